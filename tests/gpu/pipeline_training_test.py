#!/usr/bin/env python3
"""Pipelines on GPUs, whose ranks may share one: losses and weights of one GPU that accumulates as much, in two and three stages, with data
groups, sharded state and tensor groups beside them; checkpoints that go on at another division and on a CPU; and a killed rank that the
others name. PROGRAM: dlrun-train. Needs a GPU and NCCL."""
import array
import json
import math
import pathlib
import re
import sys
import tempfile
import time

import divided
import trainings

# A step of few batches of their own, so that several ranks on one GPU are done in seconds.
SETTINGS = {"model": {"name": "small", "transformer": {"layers": 3, "heads": 4, "features": 128, "context": 64}}, "batch": 4,
            "accumulate": 4, "epochs": 1, "schedule": {"decay": "none"}, "precision": "f32", "seed": 1}
NEAR = {"f32": 1e-4, "bf16": 1e-2}  # of a loss, in its own size, within a hundred steps
CLOSE = {"f32": 2e-3, "bf16": 0.05}  # of a tensor, in its own norm: AdamW makes much of a gradient that is nearly zero


def transformer(**more):
    return {"model": {"name": "small", "transformer": {**SETTINGS["model"]["transformer"], **more}}}


def numbers_of(file):
    """The f32 tensors of a safetensors file, by name."""
    length = int.from_bytes(file[:8], "little")
    header = json.loads(file[8:8 + length])
    header.pop("__metadata__", None)
    return {name: array.array("f", file[8 + length:][slice(*of["data_offsets"])]) for name, of in header.items()}


class Pipelines(divided.Divided):
    @classmethod
    def setUpClass(cls):
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-gpu-"))
        trainings.prepare_tokens(cls.data, 800)

    def settings(self, state="replicated", **more):
        data = {"format": "tokens", "dir": str(self.data / "tokens"), "context": 64}
        return {**SETTINGS, "data": data, "optimizer": {"name": "adamw", "lr": 0.0005, "state": state}, **more}

    def world(self, stages, replicas=1, tensor=1, **more):
        """Ranks as the launcher would number them."""
        def groups(rank):
            place = {"TENSOR": (rank % tensor, tensor), "DATA": (rank // tensor % replicas, replicas),
                     "PIPELINE": (rank // tensor // replicas, stages)}
            return {f"DLRUN_{kind}_{what}": str(number) for kind, numbers in place.items()
                    for what, number in zip(("RANK", "SIZE"), numbers)}
        return self.ranks(count=stages * replicas * tensor, of_rank=groups if stages * tensor > 1 else lambda rank: {}, **self.settings(**more))

    def staged(self, stages, replicas=1, tensor=1, **more):
        """Such ranks to their end: the losses that they told."""
        before, begin = self.lines_so_far(), time.monotonic()
        world = self.world(stages, replicas, tensor, **more)
        codes = world.wait(trainings.LONGEST)
        said = [line for line in world.text(0).splitlines() if re.search("GPU|optimizer state|pipelines|tensor group|error", line)]
        print(f"--- {stages} stages, replicas {replicas}, tensor {tensor}, {more} {time.monotonic() - begin:.1f} s", *said, sep="\n", flush=True)
        self.assertEqual(codes, [0] * len(codes), "".join(world.text(rank)[-600:] for rank in range(len(codes))))
        if stages > 1:
            self.assertIn("stages send values and gradients from GPU to GPU by NCCL", world.text(0))
        return self.losses(before)

    def parameters(self):
        return numbers_of(self.exported())

    def assert_close(self, ours, peers, bound):
        self.assertEqual(set(ours), set(peers))
        norm = lambda numbers: math.sqrt(sum(number * number for number in numbers))
        apart = {name: norm(a - b for a, b in zip(ours[name], peers[name])) / max(norm(peers[name]), 1e-3) for name in peers}
        worst = max(apart, key=apart.get)
        equal = sum(ours[name] == peers[name] for name in peers)
        print(f"--- weights: {worst} is {apart[worst]:.1e} apart, {equal} of {len(peers)} tensors have the same bits", flush=True)
        self.assertLess(apart[worst], bound)

    def compare(self, whole, parts, **more):
        """`whole` and `parts`: arguments of staged(); one process where `whole` is None."""
        precision = {**SETTINGS, **more}["precision"]
        self.setUp()
        peers, weights = self.one(**more) if whole is None else self.staged(**whole, **more), self.parameters()
        self.setUp()
        ours = self.staged(**{**parts, **more})
        self.assert_near(ours, peers, NEAR[precision])
        self.assert_close(self.parameters(), weights, CLOSE[precision])

    def test_two_stages_that_share_the_embedding_come_to_one_gpu(self):
        self.compare(None, {"stages": 2}, **{"clip-norm": 0.5}, **transformer(dropout=0.1))

    def test_three_stages_come_to_one_gpu(self):
        self.compare(None, {"stages": 3}, accumulate=5, precision="bf16", **transformer(tied=False, dropout=0.1))

    def test_pipelines_in_data_groups(self):
        whole = {"stages": 1, "replicas": 2}
        for parts in ({"stages": 2, "replicas": 2}, {"stages": 2, "replicas": 2, "state": "sharded"}):
            self.compare(whole, parts, accumulate=2, **{"clip-norm": 0.5})

    def test_tensor_groups_in_pipelines(self):
        self.compare(None, {"stages": 2, "tensor": 2}, **{"clip-norm": 0.5})

    def test_a_checkpoint_goes_on_at_any_division_and_on_a_cpu(self):
        whole = self.one(epochs=2)
        last = max(step for step, _ in whole)
        peers = {key: loss for key, loss in whole.items() if key[0] == last and key[1] != "loss"}
        for order in ((2, 1), (1, 3)):
            self.setUp()
            for epochs, stages in enumerate(order, start=1):
                losses = self.one(epochs=epochs) if stages == 1 else self.staged(stages, epochs=epochs)
            self.assert_near({key: loss for key, loss in losses.items() if key in peers}, peers, 2e-3)
        self.assert_evaluates_on_a_cpu()

    def test_a_rank_that_is_killed_is_named_within_seconds(self):
        """In the middle of a long epoch: at its end hosts exchange more, as they write checkpoints."""
        data = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-gpu-"))
        trainings.prepare_tokens(data, 20000)
        for ranks in ({"stages": 3}, {"stages": 2, "replicas": 2}):
            self.setUp()
            world = self.world(**ranks, epochs=100, data={"format": "tokens", "dir": str(data / "tokens"), "context": 64})
            while self.last_step() < 10 and world.processes[0].poll() is None:
                time.sleep(0.01)
            begin = time.monotonic()
            world.kill(1)
            codes, seconds = world.wait(60), time.monotonic() - begin
            print(f"--- {ranks}: rank 1 killed: {codes} after {seconds:.2f} s", world.text(0)[-300:], sep="\n", flush=True)
            others = [rank for rank in range(len(codes)) if rank != 1]
            self.assertEqual([codes[rank] for rank in others], [71] * len(others))
            for rank in others:
                self.assertRegex(world.text(rank), r"rank 1 on \S+ is gone")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    trainings.main()
