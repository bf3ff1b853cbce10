#!/usr/bin/env python3
"""Scientific data end to end: a classifier on HDF5, a GAN on .npy files, a regression on volumes and several labels at
once are trained, evaluated and asked, and what cannot be read or run is said with its place."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy

import hdf5_writer
import support


class Science(support.Case):
    def job(self, name, train):
        return self.write(name + ".yaml", f"framework: builtin\ncheckpoint: {{dir: ckpt-{name}}}\ntrain:\n" +
                          "".join(f"  {line}\n" for line in train))

    def train(self, name, train):
        code, out, err = self.dlrun("--run-dir", "run-" + name, self.job(name, train))
        self.assertEqual(code, 0, out + err)
        with open(os.path.join(self.folder, "run-" + name, "record.json"), encoding="utf-8") as file:
            return json.load(file)["result"]

    def tool(self, *arguments):
        done = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), *arguments], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def save(self, name, array):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        numpy.save(path, array)

    def test_hep_cnn_on_hdf5_learns_what_is_in_the_images(self):
        random = numpy.random.default_rng(1)
        labels = random.integers(0, 2, 48).astype("int32")
        images = random.random((48, 3, 16, 16)).astype("float32") * 100
        images[labels == 1, 0, 4:12, 4:12] += 300  # energy in the middle
        hdf5_writer.write(os.path.join(self.folder, "events.h5"), images=images[:32], labels=labels[:32])
        hdf5_writer.write(os.path.join(self.folder, "others.h5"), images=images[32:], labels=labels[32:])
        result = self.train("hep", ["model: hep-cnn", "batch: 8", "epochs: 12", "optimizer: {name: adam, lr: 0.002}",
                                    "data: {format: hdf5, file: events.h5, test-file: others.h5, samples: images, "
                                    "labels: labels, transform: log1p, mean: 4, std: 1}"])
        self.assertGreater(result["test_accuracy"], 0.9)
        code, out, err = self.tool("--evaluate", "others.h5", "--from", "hdf5", "--samples", "images", "--labels", "labels",
                                   "--checkpoint", "ckpt-hep")
        self.assertEqual(code, 0, err)
        self.assertAlmostEqual(json.loads(out)["top1"], result["test_accuracy"], 4)

    def test_cosmogan_on_a_folder_of_maps(self):
        random = numpy.random.default_rng(2)
        for number in range(12):
            self.save(f"maps/map{number:03}.npy", numpy.tanh(random.normal(size=(1, 16, 16))).astype("float32"))
        result = self.train("gan", ["model: cosmogan", "batch: 4", "epochs: 1", "data: {format: numpy, dir: maps}"])
        self.assertGreater(result["loss_d"] + result["loss_g"], 0)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "run-gan", "samples-epoch-0001.png")))

    def test_cosmoflow_predicts_the_numbers_that_made_a_volume(self):
        random = numpy.random.default_rng(3)
        targets = random.random((24, 2)).astype("float32")
        volumes = random.normal(size=(24, 8, 8, 8, 1)).astype("float32") + 4 * targets[:, 0].reshape(-1, 1, 1, 1, 1)
        numpy.savez_compressed(os.path.join(self.folder, "train.npz"), x=volumes[:16], y=targets[:16])
        numpy.savez(os.path.join(self.folder, "test.npz"), x=volumes[16:], y=targets[16:])
        result = self.train("flow", ["model: cosmoflow", "batch: 4", "epochs: 2", "loss: {name: huber, delta: 0.5}",
                                     "optimizer: {name: adam, lr: 0.001}", "device: cpu",
                                     "data: {format: numpy, file: train.npz, test-file: test.npz, samples: x, targets: y, axes: DHWC}"])
        self.assertNotIn("test_accuracy", result)
        code, out, err = self.tool("--evaluate", "test.npz", "--from", "numpy", "--samples", "x", "--targets", "y",
                                   "--checkpoint", "ckpt-flow")
        self.assertEqual(code, 0, err)
        found = json.loads(out)
        self.assertEqual((found["samples"], found["targets"]), (8 + 0, 2))
        for key in ("loss", "mae", "rmse"):
            self.assertAlmostEqual(found[key], result["test_" + key], 4)
        numpy.savez(os.path.join(self.folder, "none.npz"), x=volumes[16:] + numpy.nan, y=targets[16:])
        code, out, err = self.tool("--evaluate", "none.npz", "--from", "numpy", "--samples", "x", "--targets", "y", "--damaged", "drop",
                                   "--checkpoint", "ckpt-flow")
        self.assertEqual(code, 65, out)
        self.assertIn("no sample is left to evaluate", err)
        self.save("asked/x.npy", volumes[16:])
        code, out, err = self.tool("--predict", "asked/x.npy", "--checkpoint", "ckpt-flow")
        self.assertEqual(code, 0, err)
        told = numpy.array([row["targets"] for row in json.loads(out)["predictions"]])
        errors = numpy.abs(told - targets[16:])
        self.assertAlmostEqual(errors.mean(), result["test_mae"], 4)
        self.assertAlmostEqual((errors ** 2).mean() ** 0.5, result["test_rmse"], 4)
        huber = numpy.where(errors <= 0.5, errors ** 2 / 2, 0.5 * (errors - 0.25))
        self.assertAlmostEqual(huber.mean(), result["test_loss"], 4)

    def test_a_training_on_hdf5_that_resumes_within_an_epoch_ends_with_the_same_bits(self):
        random = numpy.random.default_rng(5)
        hdf5_writer.write(os.path.join(self.folder, "rows.h5"), x=random.random((40, 12)).astype("float32"),
                          y=random.random((40, 3)).astype("float32"))
        job = ["model: {layers: [{fully-connected: 16}, tanh, {dropout: 0.2}, {fully-connected: targets}]}", "batch: 4", "epochs: 2",
               "loss: mean-absolute-error", "data: {format: hdf5, file: rows.h5, samples: x, targets: y, train: 0.8}"]
        text = self.read(self.job("whole", job)).replace("ckpt-whole}", "ckpt-whole, every: 1steps, keep: 100}")
        code, out, err = self.dlrun("--run-dir", "run-whole", self.write("whole.yaml", text))
        self.assertEqual(code, 0, out + err)
        steps = sorted(os.listdir(os.path.join(self.folder, "ckpt-whole")))
        steps = [name for name in steps if name.startswith("step-")]
        self.assertEqual((steps[0], steps[-1]), ("step-00000001", "step-00000016"))  # an epoch has eight
        shutil.copytree(os.path.join(self.folder, "ckpt-whole", steps[0]), os.path.join(self.folder, "ckpt-part", steps[0]))
        code, out, err = self.dlrun("--run-dir", "run-part", self.write("part.yaml", text.replace("ckpt-whole", "ckpt-part")))
        self.assertEqual(code, 0, out + err)
        whole, part = (pathlib.Path(self.folder, folder, steps[-1], "model.safetensors").read_bytes() for folder in ("ckpt-whole", "ckpt-part"))
        self.assertEqual(whole, part)
        with open(os.path.join(self.folder, "run-part", "metrics.jsonl"), encoding="utf-8") as file:
            self.assertEqual(json.loads(file.readline())["step"], 8)

    def test_several_labels_at_once_on_two_ranks(self):
        random = numpy.random.default_rng(4)
        there = random.integers(0, 2, (64, 3)).astype("float32")
        rows = numpy.concatenate([there, random.random((64, 5))], axis=1).astype("float32")
        self.save("many/x.npy", rows)
        self.save("many/y.npy", there)
        model = "model: {name: many, layers: [{fully-connected: 16}, relu, {fully-connected: targets}]}"
        job = [model, "batch: 8", "epochs: 60", "optimizer: {name: adam, lr: 0.02}", "loss: sigmoid-cross-entropy",
               "stop-at: {accuracy: 0.99}", "data: {format: numpy, dir: many, samples: x.npy, targets: y.npy, train: 0.75}"]
        code, out, err = self.dlrun("--tasks-per-node", "2", "--run-dir", "run-many", self.job("many", job))
        self.assertEqual(code, 0, out + err)
        with open(os.path.join(self.folder, "run-many", "record.json"), encoding="utf-8") as file:
            result = json.load(file)["result"]
        self.assertGreater(result["validation_accuracy"], 0.9)
        self.assertGreater(result["validation_f1"], 0.9)

    def test_damaged_samples_are_named_once_and_counted_over_all_ranks_after_each_epoch(self):
        rows = numpy.arange(96, dtype="float32").reshape(48, 2) / 96
        rows[[3, 17, 18, 31, 40], 1] = numpy.nan
        self.save("bad/x.npy", rows)
        self.save("bad/y.npy", numpy.full((48, 1), 0.5, "float32"))
        job = self.job("drop", ["model: {layers: [{fully-connected: targets}]}", "batch: 2", "epochs: 3", "optimizer: {lr: 0.001}",
                                "data: {format: numpy, dir: bad, samples: x.npy, targets: y.npy, train: 0.75, damaged: drop}"])
        code, out, err = self.dlrun("--tasks-per-node", "3", "--run-dir", "run", job)
        self.assertEqual(code, 0, out + err)
        named = re.findall(r"damaged sample left out: .*offset (\d+)", out + err)
        self.assertEqual((len(named), len(set(named))), (5, 5), out + err)
        trained = re.findall(r"(\d+) damaged sample\(s\) left out of epoch (\d)", out)
        self.assertEqual([epoch for _, epoch in trained], ["1", "2", "3"], out)
        validated = set(re.findall(r"(\d+) damaged sample\(s\) left out of the validation split", out)) or {"0"}
        self.assertEqual({int(count) + int(*validated) for count, _ in trained}, {5}, out)

    def test_what_cannot_be_read_or_run_is_said_before_it_starts_or_with_its_place(self):
        self.save("bad/x.npy", numpy.array([[1, 2], [3, numpy.nan], [5, 6], [7, 8]], "float32"))
        self.save("bad/y.npy", numpy.array([[0.5], [1], [0], [2.5]], "float32"))
        hdf5_writer.write(os.path.join(self.folder, "some.h5"), x=numpy.zeros((2, 4), "float32"))
        data = "data: {format: numpy, dir: bad, samples: x.npy, targets: y.npy, train: 0.5%s}"
        layers = "model: {layers: [{fully-connected: targets}]}"

        def refused(*train, code=65):
            got, out, err = self.dlrun(self.job("bad", [*train, "batch: 2"]))
            self.assertEqual(got, code, out + err)
            return out + err

        self.assertIn("has no data set 'images'", refused("model: mnist-cnn", "data: {format: hdf5, file: some.h5, samples: images, train: 0.5}"))
        self.assertIn("x.npy: offset 140: sample 1 has nan here", refused(layers, data % ""))
        self.assertIn("bad.yaml:5:85: train.data.mean has 2 numbers for 1 channel", refused(layers, data % ", mean: [1, 2]"))
        self.assertIn("y.npy: offset 128: target 0 of sample 0 is 0.5, and train.loss sigmoid-cross-entropy needs 0 or 1",
                      refused(layers, data % "", "loss: sigmoid-cross-entropy"))
        self.assertIn("needs answers that are right or wrong", refused(layers, data % "", "stop-at: {accuracy: 0.5}"))
        code, out, err = self.dlrun(self.job("drop", [layers, data % ", damaged: drop", "batch: 1", "seed: 7", "optimizer: {lr: 0.001}"]))
        self.assertEqual(code, 0, out + err)
        self.assertEqual((out + err).count("damaged sample left out: "), 1)
        self.assertEqual((out + err).count("1 damaged sample(s) left out of epoch 1"), 1)
        self.assertIn("x.npy: offset 140", out + err)
        self.assertIn("epoch 1/1", out + err)  # whose last step has this sample alone


if __name__ == "__main__":
    support.main()
