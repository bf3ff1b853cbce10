#!/usr/bin/env python3
"""Ranks on GPUs that share a language model or the state of its optimizer: a tensor group comes to the losses of one GPU, with slices of
the positions, too; sharded state comes to the bits of replicated state, in tensor groups, too; each goes on from the other's checkpoints
and on a CPU, and a killed rank is named by the other. PROGRAM: dlrun-train. Needs NCCL; two or four ranks may share one GPU."""
import pathlib
import re
import sys
import tempfile
import time

import divided
import trainings

SETTINGS = {"model": {"name": "small", "transformer": {"layers": 2, "heads": 4, "features": 128, "context": 64}}, "batch": 16, "epochs": 1,
            "schedule": {"decay": "none"}, "precision": "f32"}
BOUNDS = {"f32": 1e-4, "bf16": 1e-2}  # of a loss, in its own size, within a hundred steps
LATER = 2e-3  # the same of f32 after two epochs, where other batches per rank round otherwise from the start
# A step is long beside what the hosts do, between whose messages a killed rank is the launcher's to notice; and a term is summed in
# two halves.
LONG_STEPS = {"model": {"name": "wide", "transformer": {"layers": 4, "heads": 8, "features": 512, "context": 64}}, "batch": 64}


GROUPS = "tensor groups sum on the GPUs by NCCL"
SHARDED = "each GPU gets the sums of its part of the gradients by NCCL"
# Ranks, ranks of a tensor group, whether these have slices of the positions, and the state of the optimizer.
DIVISIONS = {"data": (2, 1, "off", "replicated"), "sharded": (2, 1, "off", "sharded"), "tensor": (2, 2, "off", "replicated"),
             "sequence": (2, 2, "on", "replicated"), "groups": (4, 2, "off", "replicated"), "sharded groups": (4, 2, "off", "sharded"),
             "sharded sequence": (4, 2, "on", "sharded"), "sequence of 4": (4, 4, "on", "replicated")}


class Parallel(divided.Divided):
    @classmethod
    def setUpClass(cls):
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-gpu-"))
        trainings.prepare_tokens(cls.data, 2500)

    def settings(self, state="replicated", **more):
        optimizer = {"name": "adamw", "lr": 0.0005, "state": state}
        data = {"format": "tokens", "dir": str(self.data / "tokens"), "context": 64}
        return {**SETTINGS, "data": data, "optimizer": optimizer, **more}

    def world(self, division, **more):
        """Ranks as the launcher would number them."""
        ranks, tensor, sequence, state = DIVISIONS[division]
        groups = lambda rank: {"DLRUN_TENSOR_RANK": str(rank % tensor), "DLRUN_TENSOR_SIZE": str(tensor), "DLRUN_SEQUENCE_PARALLEL": sequence,
                               "DLRUN_DATA_RANK": str(rank // tensor), "DLRUN_DATA_SIZE": str(ranks // tensor)}
        return self.ranks(count=ranks, of_rank=groups if tensor > 1 else lambda rank: {}, **self.settings(state, **more))

    def divided(self, division, said=None, **more):
        """Its ranks to their end: the losses that they told."""
        before = self.lines_so_far()
        begin = time.monotonic()
        world = self.world(division, **more)
        codes = world.wait(trainings.LONGEST)
        lines = [line for line in world.text(0).splitlines() if re.search("GPU|optimizer state|tensor group", line)]
        print(f"--- {division} {more} {time.monotonic() - begin:.1f} s", *lines, sep="\n", flush=True)
        self.assertEqual(set(codes), {0}, "".join(world.text(rank)[-2000:] for rank in range(len(codes))))
        if said:
            self.assertIn(said, world.text(0))
        return self.losses(before)

    def test_a_tensor_group_comes_to_the_losses_of_one_gpu(self):
        together = {"clip-norm": 1, "accumulate": 2}
        for precision, more in (("f32", together), ("bf16", together), ("f32", LONG_STEPS)):
            self.setUp()
            peers = self.one(**{"precision": precision, **more})
            self.setUp()
            ours = self.divided("tensor", GROUPS, **{"precision": precision, **more})
            self.assert_near(ours, peers, BOUNDS[precision])

    def test_slices_of_the_positions_come_to_the_losses_of_one_gpu_and_to_the_same_bits_again(self):
        """Dropout draws the masks of the whole batch, and norms have terms of their gradients. Batches are large: in smaller ones a hundred
        steps without dropout make a difference of 1e-2 out of one of the last bits, on CPUs, too."""
        dropout = {"model": {"name": "small", "transformer": {**SETTINGS["model"]["transformer"], "dropout": 0.1}}}
        for division, precision, more in (("sequence", "f32", {"clip-norm": 1, "accumulate": 2, **dropout}),
                                          ("sequence", "bf16", dropout), ("sequence of 4", "f32", {"clip-norm": 1, "batch": 64})):
            self.setUp()
            peers = self.one(**{"precision": precision, **more})
            self.setUp()
            ours, weights = self.divided(division, "slice of the positions", **{"precision": precision, **more}), self.weights()
            self.assert_near(ours, peers, BOUNDS[precision])
        self.setUp()
        self.assertEqual((self.divided(division, **{"precision": precision, **more}), self.weights()), (ours, weights))

    def test_sharded_state_in_tensor_groups_has_the_bits_of_replicated_state(self):
        """And its norm, added over the parts of both kinds of groups, is that of one GPU."""
        settings = {"batch": 32, "ema": 0.9, "allreduce": {"bucket": "256KiB"}}
        peers, whole = self.divided("groups", GROUPS, **settings), self.weights()
        self.setUp()
        self.assertEqual(self.divided("sharded groups", SHARDED, **settings), peers)
        self.assertEqual(self.weights(), whole)
        for precision, limit in (("f32", 1), ("bf16", 0.5)):
            more = {"precision": precision, "clip-norm": limit}
            self.setUp()
            peers = self.one(batch=64, **more)
            self.setUp()
            self.assert_near(self.divided("sharded sequence", SHARDED, batch=32, **more), peers, BOUNDS[precision])

    def test_sharded_state_has_the_bits_of_replicated_state(self):
        for more in ({"precision": "f32"}, {"precision": "bf16", "accumulate": 2, "ema": 0.9}):
            self.setUp()
            peers, whole = self.divided("data", "gradients are summed on the GPUs by NCCL", **more), self.weights()
            self.setUp()
            ours = self.divided("sharded", SHARDED, **more)
            self.assertEqual(ours, peers)
            self.assertEqual(self.weights(), whole)

    def test_a_clipped_sharded_training_comes_to_the_same_losses(self):
        peers = self.divided("data", **{"clip-norm": 0.5})
        self.setUp()
        self.assert_near(self.divided("sharded", **{"clip-norm": 0.5}), peers, BOUNDS["f32"])

    def test_a_checkpoint_goes_on_at_any_division_and_on_a_cpu(self):
        """Two epochs of one GPU, and the second after a first of another division, with the same global batch."""
        for divided, batches in (("sharded", {"one": 32, "sharded": 16}), ("tensor", {"one": 16, "tensor": 16}),
                                 ("sharded sequence", {"one": 64, "sharded sequence": 32})):
            self.setUp()
            whole = self.one(epochs=2, batch=batches["one"])
            last_step = max(step for step, _ in whole)
            peers = {key: loss for key, loss in whole.items() if key[0] == last_step and key[1] != "loss"}
            for order in (("one", divided), (divided, "one")):
                self.setUp()
                for epochs, division in enumerate(order, start=1):
                    settings = {"epochs": epochs, "batch": batches[division]}
                    last = self.one(**settings) if division == "one" else self.divided(division, **settings)
                self.assert_near({key: loss for key, loss in last.items() if key in peers}, peers, LATER)
        self.assert_evaluates_on_a_cpu()

    def test_a_rank_that_is_killed_is_named_within_seconds(self):
        """In the middle of a long epoch: at its end hosts exchange more, as they write checkpoints."""
        data = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-gpu-"))
        trainings.prepare_tokens(data, 20000)
        settings = {**LONG_STEPS, "data": {"format": "tokens", "dir": str(data / "tokens"), "context": 64}}
        for division in ("tensor", "sharded"):
            for victim in (1, 0):
                self.setUp()
                world = self.world(division, epochs=10000, **settings)
                while self.last_step() < 50 and world.processes[0].poll() is None:
                    time.sleep(0.01)
                begin = time.monotonic()
                world.kill(victim)
                codes, seconds = world.wait(60), time.monotonic() - begin
                witness = 1 - victim
                print(f"--- {division}: rank {victim} killed: {codes} after {seconds:.2f} s", world.text(witness)[-300:], sep="\n", flush=True)
                self.assertEqual(codes[witness], 71)
                self.assertRegex(world.text(witness), rf"rank {victim} on \S+ is gone")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    trainings.main()
