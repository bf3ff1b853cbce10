#!/usr/bin/python3
"""sums_training_test.py DLRUN_TRAIN [PART...]: the allreduce algorithms of ranks on GPUs, against NCCL alone: NCCL inside nodes and
messages between them, on one machine that emulates several nodes, and 16-bit dtypes. Two ranks and, where there are four GPUs, four.
Needs two GPUs, the data of Debian's dataset-fashion-mnist or DLRUN_FASHION, and mpirun for the part that has an MPI."""
import json
import shutil
import subprocess
import time

from trainings import LONGEST, Trainings, main

GPUS = subprocess.run(["nvidia-smi", "-L"], text=True, stdout=subprocess.PIPE, check=True).stdout.count("GPU ")
WORLDS = [count for count in (2, 4) if count <= GPUS]
# By NCCL over all ranks, whatever the nodes.
ALONE = {}
# As many nodes of as many ranks; a node of one has no NCCL to speak of.
NODES = {2: [1], 4: [2, 1]}


def nodes_of(ranks):
    return {"DLRUN_ALLREDUCE": "hierarchical", "DLRUN_NODE_RANKS": str(ranks)}


class SumsTraining(Trainings):
    def losses(self, count, environment, said, **train):
        """The loss of the first steps and of each epoch, of a training whose log says how it sums."""
        self.setUp()
        begin = time.monotonic()
        world = self.ranks(environment, count, **{"epochs": 2, "precision": "f32", **train})
        codes = world.wait(LONGEST)
        print(f"--- {count} ranks {environment} {train} {time.monotonic() - begin:.1f} s\n{world.text(0)}", flush=True)
        self.assertEqual(codes, [0] * count, world.text(count - 1))
        self.assertIn(said, world.text(0))
        return self.told()

    def told(self):
        lines = self.metrics()
        return [next(line["loss"] for line in lines if "loss" in line),
                *(line["epoch_loss"] for line in lines if "epoch_loss" in line)]

    def assert_near(self, losses, peers, share):
        print(f"--- losses {losses}, of NCCL alone {peers}", flush=True)
        self.assertEqual(len(losses), len(peers))
        for loss, peer in zip(losses, peers):
            self.assertAlmostEqual(loss, peer, delta=share * peer)

    def test_nodes_joined_by_messages_train_as_nccl_alone(self):
        for count in WORLDS:
            peers = self.losses(count, ALONE, "gradients are summed on the GPUs by NCCL")
            for ranks in NODES[count]:
                losses = self.losses(count, nodes_of(ranks), f"between them ({count // ranks} nodes of {ranks})")
                self.assert_near(losses, peers, 0.01)

    def test_a_16_bit_dtype_trains_as_f32(self):
        for count in WORLDS:
            peers = self.losses(count, ALONE, "gradients are summed on the GPUs by NCCL")
            for dtype in ("bf16", "f16"):
                losses = self.losses(count, ALONE, f" as {dtype}, in parallel with the backward pass", allreduce={"dtype": dtype})
                self.assert_near(losses, peers, 0.02)

    def test_parameter_servers_on_the_hosts_train_as_nccl_alone(self):
        for count in WORLDS:
            peers = self.losses(count, ALONE, "gradients are summed on the GPUs by NCCL")
            for server, dtype, share in (({"servers": 1}, "f32", 0.01), ({"placement": "split"}, "bf16", 0.02)):
                losses = self.losses(count, ALONE, "gradients go through the host, to parameter servers", allreduce={"dtype": dtype},
                                     **{"parameter-server": server})
                self.assert_near(losses, peers, share)

    def test_a_16_bit_dtype_between_nodes_trains_as_f32(self):
        count = WORLDS[-1]
        peers = self.losses(count, ALONE, "gradients are summed on the GPUs by NCCL")
        for ranks in NODES[count]:
            losses = self.losses(count, nodes_of(ranks), " as bf16 between them", allreduce={"dtype": "bf16"})
            self.assert_near(losses, peers, 0.02)

    def test_unequal_nodes_are_refused_by_number(self):
        world = self.ranks(nodes_of(2), 3) if GPUS >= 3 else None
        if world is None:
            print("--- needs three GPUs: not run", flush=True)
            return
        codes = world.wait(LONGEST)
        self.assertNotIn(0, codes)
        self.assertIn("the hierarchical allreduce needs the same number of ranks on every node", world.text(0))

    def test_an_mpi_between_nodes_trains_as_nccl_alone(self):
        self.assertIsNotNone(shutil.which("mpirun"), "this part needs mpirun of Open MPI")
        count = WORLDS[-1]
        peers = self.losses(count, ALONE, "gradients are summed on the GPUs by NCCL")
        for dtype in ("f32", "bf16"):
            self.setUp()
            text = self.by_mpirun(count, nodes_of(count // 2), allreduce={"dtype": dtype})
            self.assertIn("by Open MPI", text)
            self.assert_near(self.told(), peers, 0.02)

    def by_mpirun(self, count, environment, **train):
        local = 'DLRUN_LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK exec "$@"'
        settings = [word for name, value in environment.items() for word in ("-x", f"{name}={value}")]
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(count), "-x", "DLRUN_COMM=openmpi", "-x",
                   f"DLRUN_RUN_DIR={self.folder}", *settings, "sh", "-c", local, "sh",
                   *self.job(**{"epochs": 2, "precision": "f32", **train})]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=LONGEST)
        print(f"--- {json.dumps(train)}\n{done.stdout}", flush=True)
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def test_a_rank_that_is_killed_is_named_and_no_crossing_hangs(self):
        for count in WORLDS:
            for victim in (count - 1, 0):
                self.setUp()
                world = self.ranks(nodes_of(NODES[count][0]), count, epochs=10000, precision="bf16")
                while "epoch 2/" not in world.text(0) and world.processes[0].poll() is None:
                    time.sleep(0.05)
                begin = time.monotonic()
                world.kill(victim)
                codes = world.wait(LONGEST)
                print(f"--- rank {victim} of {count} killed: {codes} after {time.monotonic() - begin:.2f} s", flush=True)
                for witness in set(range(count)) - {victim}:
                    print(world.text(witness)[-600:], flush=True)
                    self.assertEqual(codes[witness], 71)
                    self.assertRegex(world.text(witness), rf"rank {victim} on \S+ is gone")


if __name__ == "__main__":
    main()
