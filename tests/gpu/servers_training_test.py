#!/usr/bin/python3
"""servers_training_test.py DLRUN_TRAIN [PART...]: parameter servers as processes of their own, which see no GPU, for two workers that share
one GPU: the losses and the checkpoint of servers that live on ranks, also in bf16, and that a training with a staleness
learns. Needs one GPU and the data of Debian's dataset-fashion-mnist or DLRUN_FASHION."""
import time

from trainings import LONGEST, Trainings, main

WORKERS, SERVERS = 2, 2
ROLES = {"DLRUN_SERVERS": str(SERVERS)}


def own(rank):
    worker = rank < WORKERS
    return {"DLRUN_ROLE": "worker" if worker else "ps", "CUDA_VISIBLE_DEVICES": "0" if worker else ""}


class ServersTraining(Trainings):
    def losses(self, servers, epochs=2, **train):
        """Of each epoch, and what rank 0 has said."""
        begin = time.monotonic()
        world = self.ranks(ROLES if servers else {}, WORKERS + servers, own, **{"epochs": epochs, "precision": "f32", **train})
        codes = world.wait(LONGEST)
        print(f"--- {servers} servers {train} {time.monotonic() - begin:.1f} s\n{world.text(0)}", flush=True)
        self.assertEqual(codes, [0] * (WORKERS + servers), world.text(WORKERS + servers - 1))
        return [line["epoch_loss"] for line in self.metrics() if "epoch_loss" in line], world.text(0)

    def assert_near(self, losses, peers, share):
        print(f"--- losses {losses}, of servers on ranks {peers}", flush=True)
        self.assertEqual(len(losses), len(peers))
        for loss, peer in zip(losses, peers):
            self.assertAlmostEqual(loss, peer, delta=share * peer)

    def test_they_train_as_servers_on_ranks_do(self):
        peers, _ = self.losses(0, **{"parameter-server": {}})
        for server, dtype, share in (({}, "f32", 0.01), ({"placement": "split"}, "bf16", 0.05)):
            self.setUp()
            losses, text = self.losses(SERVERS, allreduce={"dtype": dtype}, **{"parameter-server": server})
            self.assertIn("2 parameter servers of their own for 2 workers", text)
            self.assertIn("on GPU 0", text)
            self.assert_near(losses, peers, share)

    def test_with_a_staleness_they_learn(self):
        losses, text = self.losses(SERVERS, **{"parameter-server": {"staleness": 2}})
        self.assertIn("staleness: a worker was ", text)
        self.assertLess(losses[-1], 0.8 * losses[0])

    def test_a_checkpoint_has_the_servers_state(self):
        steady = {"schedule": {"warmup": "100steps"}}  # whatever the number of epochs
        peers, _ = self.losses(0, epochs=3, **steady, **{"parameter-server": {}})
        self.setUp()
        self.losses(SERVERS, epochs=1, **steady)
        losses, text = self.losses(SERVERS, epochs=3, **steady)
        self.assertIn("resuming from", text)
        self.assert_near(losses, peers, 0.01)


if __name__ == "__main__":
    main()
