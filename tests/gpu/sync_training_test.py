#!/usr/bin/python3
"""sync_training_test.py DLRUN_TRAIN [PART...]: communication in fewer steps (train.sync) on two GPUs: weights, momentum and running
statistics are those of the same training on CPUs, which tests/e2e/sync_test.py compares with PyTorch; a run that goes on from a
checkpoint ends with the same bits; and a rank that dies is named. Needs two GPUs, numpy, and Fashion-MNIST for the last part."""
import json
import pathlib
import struct
import time

import numpy

from trainings import LONGEST, Trainings, main

SAMPLES, EPOCHS, EVERY = 104, 3, 4
LAYERS = [{"convolution": 4, "kernel": 3, "name": "first"}, {"batch-norm": None, "name": "norm"}, "tanh",
          {"fully-connected": "targets", "name": "last"}]


def read(folder):
    """All tensors of a checkpoint."""
    out = {}
    for name in ("model", "optimizer"):
        content = (folder / f"{name}.safetensors").read_bytes()
        begin = 8 + struct.unpack("<Q", content[:8])[0]
        for tensor, about in json.loads(content[8:begin]).items():
            if tensor != "__metadata__":
                first, last = about["data_offsets"]
                out[tensor] = numpy.frombuffer(content[begin + first:begin + last], "<f4").reshape(about["shape"])
    return out


class SyncTraining(Trainings):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(7)
        x = random.normal(size=(SAMPLES, 1, 6, 6)).astype("float32")
        y = numpy.tanh(x.reshape(SAMPLES, 36) @ random.normal(size=(36, 2)) / 6).astype("float32")
        for name, values in (("x", x), ("y", y)):
            numpy.save(self.folder / f"{name}.npy", values)

    def train(self, epochs=EPOCHS, said="", environment=None, **more):
        """Two ranks; the tensors of the last checkpoint."""
        data = {"format": "numpy", "dir": str(self.folder), "samples": "x.npy", "targets": "y.npy", "test-samples": "x.npy",
                "test-targets": "y.npy"}
        world = self.ranks(environment, model={"name": "small", "layers": LAYERS}, data=data, batch=4, epochs=epochs, schedule={},
                           precision="f32", optimizer={"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight-decay": 0.001},
                           sync={"every": EVERY, "from": "1epochs"}, **more)
        self.assertEqual(world.wait(LONGEST), [0, 0], world.text(0) + world.text(1))
        self.assertIn(said, world.text(0))
        return read(sorted(pathlib.Path(self.folder, "ckpt").glob("step-*"))[-1])

    def test_gpus_average_as_cpus_do(self):
        of_cpus = self.train(device="cpu")
        for environment in ({}, {"DLRUN_ALLREDUCE": "ring"}):  # averaged by NCCL, and through the host
            self.setUp()
            of_gpus = self.train(environment=environment, said="through the host" if environment else "by NCCL")
            self.assertEqual(set(of_gpus), set(of_cpus))
            self.assertIn("norm.running_var", of_gpus)
            self.assertIn("first.weight.momentum", of_gpus)
            for name, values in of_cpus.items():
                numpy.testing.assert_allclose(of_gpus[name], values, rtol=1e-3, atol=1e-4, err_msg=name)
            worst = max(numpy.abs(of_gpus[name] - values).max() for name, values in of_cpus.items())
            print(f"--- {len(of_cpus)} tensors, at most {worst:.1e} apart", flush=True)

    def test_a_run_that_goes_on_ends_with_the_same_bits(self):
        whole = self.train()
        self.setUp()
        self.train(epochs=2)
        for name, values in self.train(said="resuming from").items():
            self.assertEqual(values.tobytes(), whole[name].tobytes(), name)

    def test_a_rank_that_is_killed_is_named(self):
        world = self.ranks(epochs=10000, sync={"every": 8}, schedule={})
        while "epoch 2/" not in world.text(0) and world.processes[0].poll() is None:
            time.sleep(0.05)
        print(world.text(0)[-400:], flush=True)
        world.kill(1)
        self.assertEqual(world.wait(LONGEST)[0], 71, world.text(0))
        self.assertRegex(world.text(0), r"rank 1 on \S+ is gone")


if __name__ == "__main__":
    main()
