#!/usr/bin/python3
"""science_training_test.py DLRUN_TRAIN [PART...]: volumes with targets, images of HDF5 files and several labels per sample, drawn here
and trained on GPUs until they are told; the same job on CPUs has the same losses. Needs one GPU, two for the parts of two ranks, numpy,
a system HDF5 library, and dlrun in DLRUN_BIN for the part that runs the example of CosmoFlow."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy

from trainings import LONGEST, Trainings, main

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE.parent.parent / "share/examples/cosmoflow.yaml"
sys.path.append(str(HERE.parent / "e2e"))


def volumes(random, count):
    """Volumes of noise around the numbers that are to be told, as the example wants them."""
    targets = random.random((count, 4)).astype("float32")
    noise = random.normal(size=(count, 4, 32, 32, 32)).astype("float32") * 0.2
    return {"volumes": numpy.expm1(noise + targets[:, :, None, None, None]), "parameters": targets}


class ScienceTraining(Trainings):
    def losses(self, folder):
        """Of each epoch and of its test, of a run directory."""
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return [(line["epoch_loss"], line["test_loss"]) for line in lines if "epoch_loss" in line]

    def assert_near(self, losses, peers, share=0.01):
        print(f"--- losses {losses}, beside {peers}", flush=True)
        self.assertEqual(len(losses), len(peers))
        for both in zip(losses, peers):
            for loss, peer in zip(*both):
                self.assertAlmostEqual(loss, peer, delta=share * peer)

    def example(self, name, **settings):
        sets = [word for key, value in settings.items() for word in ("--set", f"train.{key}={value}")]
        command = [os.path.join(os.environ["DLRUN_BIN"], "dlrun"), "--gpus-per-node", "2", "--run-dir", name, *sets, EXAMPLE.name]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=self.folder,
                              timeout=LONGEST)
        print(f"--- {name} {settings}\n{done.stdout}", flush=True)
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def test_the_example_of_cosmoflow_on_two_gpus_on_cpus_and_back(self):
        random = numpy.random.default_rng(3)
        (self.folder / "data").mkdir()
        numpy.savez(self.folder / "data/train.npz", **volumes(random, 64))
        numpy.savez(self.folder / "data/test.npz", **volumes(random, 16))
        shutil.copy(EXAMPLE, self.folder)
        first = self.example("gpus", epochs=2)
        self.assertIn("on GPU 0: NVIDIA", first)
        self.assertIn("gradients are summed on the GPUs by NCCL", first)
        shutil.move(self.folder / "ckpt", self.folder / "of-gpus")
        self.example("cpus", epochs=2, device="cpu")
        self.assert_near(self.losses(self.folder / "gpus"), self.losses(self.folder / "cpus"))
        self.assertIn("resuming from", self.example("back", epochs=16, precision="bf16"))
        losses = self.losses(self.folder / "back")
        self.assertLess(losses[-1][1], losses[0][1])

    def test_hep_cnn_on_hdf5_learns_what_is_in_the_images(self):
        import hdf5_writer
        random = numpy.random.default_rng(1)
        labels = random.integers(0, 2, 192).astype("int32")
        images = random.random((192, 3, 32, 32)).astype("float32") * 100
        images[labels == 1, 0, 8:24, 8:24] += 300  # energy in the middle
        for name, part in (("events", slice(0, 128)), ("others", slice(128, 192))):
            hdf5_writer.write(self.folder / f"{name}.h5", images=images[part], labels=labels[part])
        job = {"model": "hep-cnn", "batch": 16, "schedule": {}, "optimizer": {"name": "adam", "lr": 0.001},
               "data": {"format": "hdf5", "file": str(self.folder / "events.h5"), "test-file": str(self.folder / "others.h5"),
                        "samples": "images", "labels": "labels", "transform": "log1p", "mean": 4, "std": 1}}
        self.assertIn("on GPU 0: NVIDIA", self.run_one(epochs=4, precision="bf16", **job))
        self.assertIn("resuming from", self.run_one(epochs=5, device="cpu", precision="f32", **job))
        last = self.run_one(epochs=10, precision="f32", **job)
        self.assertIn("resuming from", last)
        self.assertGreater(self.accuracy(last), 90)

    def test_several_labels_at_once_on_two_ranks(self):
        random = numpy.random.default_rng(4)
        there = random.integers(0, 2, (256, 3)).astype("float32")
        rows = numpy.concatenate([there, random.random((256, 5))], axis=1).astype("float32")
        for name, values in (("x", rows), ("y", there)):
            numpy.save(self.folder / f"{name}.npy", values)
        job = {"model": {"name": "many", "layers": [{"fully-connected": 16}, "relu", {"fully-connected": "targets"}]}, "batch": 16,
               "loss": "sigmoid-cross-entropy", "optimizer": {"name": "adam", "lr": 0.02}, "schedule": {},
               "data": {"format": "numpy", "dir": str(self.folder), "samples": "x.npy", "targets": "y.npy", "train": 0.75}}
        world = self.ranks(epochs=30, **job)
        self.assertEqual(world.wait(LONGEST), [0, 0], world.text(0) + world.text(1))
        print(world.text(0)[-300:], flush=True)
        told = [line for line in self.metrics() if "validation_f1" in line]
        self.assertGreater(told[-1]["validation_accuracy"], 0.95)
        self.assertGreater(told[-1]["validation_f1"], 0.95)


if __name__ == "__main__":
    main()
