#!/usr/bin/env python3
"""Tensor-parallel training with started ranks: losses of the undivided model, checkpoints that any number of parts loads,
and what cannot be divided is refused before a rank starts."""
import json
import os
import subprocess

import language_test
import support

JOB = """\
name: tensor
framework: builtin
resources: {nodes: 1}
train:
  model:
    name: tiny
    transformer: {layers: 1, heads: 4, key-heads: 4, features: 32, hidden: 48, norm: rms, activation: swiglu, positions: rotary, tied: false}
  data: {format: tokens, dir: tokens, context: 16}
  device: cpu
  global-batch: 16
  epochs: 1
  optimizer: {name: adamw, lr: 0.003, weight-decay: 0.1}
  clip-norm: 1.0
"""

LAYERS = """\
name: layers
framework: builtin
resources: {nodes: 1, tasks-per-node: 2}
parallel: {tensor: 2}
train:
  model:
    name: two-layers
    layers: [{convolution: 4, kernel: 3}, relu, {fully-connected: 30, split: columns}, relu, {fully-connected: classes, split: rows}]
  data: {format: synthetic, shape: [3, 8, 8], classes: 4, samples: 128}
  device: cpu
  batch: 8
  epochs: 1
"""


class TensorParallel(support.Case):
    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "texts"))
        self.write("texts/book.txt", language_test.made_text(3000))
        self.tool("--prepare", "texts", "--into", "tokens", "--tokens", "bytes", "--validation", "0.1")
        self.job = self.write("tensor.yaml", JOB)

    def tool(self, *arguments):
        done = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), *arguments], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def train(self, run, ranks, tensor, *more):
        code, out, err = self.dlrun("--quiet", "--no-bind", "--tasks-per-node", str(ranks), "--tensor-parallel", str(tensor), "--run-dir", run, *more,
                                    self.job)
        self.assertEqual(code, 0, err)
        return out, self.losses(run)

    def losses(self, run):
        lines = [json.loads(line) for line in self.read(f"{run}/metrics.jsonl").splitlines()]
        return [line["loss"] for line in lines if "loss" in line]

    def assert_alike(self, losses, expected):
        self.assertEqual(len(losses), len(expected))
        self.assertGreater(len(losses), 1)
        for step, (one, other) in enumerate(zip(losses, expected)):
            self.assertAlmostEqual(one, other, delta=2e-4 * other, msg=f"step {step}")

    def test_started_ranks_train_as_one_does(self):
        whole = self.train("whole", 1, 1)[1]
        self.assertLess(whole[-1], 0.8 * whole[0])
        self.assert_alike(self.train("two", 2, 2)[1], whole)
        self.assert_alike(self.train("four", 4, 2)[1], self.train("data", 2, 1)[1])

    def test_a_training_goes_on_at_another_size_of_groups(self):
        def train(run, ranks, tensor, epochs, folder):
            self.train(run, ranks, tensor, "--set", f"train.epochs={epochs}", "--set", f"checkpoint.dir={folder}", "--set", "checkpoint.every=20steps")
            return self.record(run)["result"]["validation_loss"]

        def checkpoints():
            return sorted(name for name in os.listdir(os.path.join(self.folder, "ckpt")) if name.startswith("step-"))

        whole = train("whole", 1, 1, 2, "whole-ckpt")
        first = train("first", 2, 2, 1, "ckpt")
        self.assertGreater(len(checkpoints()), 1)
        self.assertTrue({f"{what}-0000{part}-of-00002.safetensors" for what in ("model", "optimizer") for part in (1, 2)}
                        <= set(os.listdir(os.path.join(self.folder, "ckpt", checkpoints()[-1]))))
        self.assertAlmostEqual(json.loads(self.tool("--evaluate", "tokens", "--checkpoint", "ckpt"))["loss"], first, 4)
        second = train("second", 4, 2, 2, "ckpt")  # tensor groups of two in data groups of two
        self.assertAlmostEqual(second, whole, delta=0.01 * whole)
        self.assertLess(second, 0.95 * first)
        for run, size in (("third", 4), ("fourth", 1)):  # nothing is left to train
            self.assertAlmostEqual(train(run, size, size, 2, "ckpt"), second, 4)

    def test_layers_of_a_list_say_how_they_are_divided(self):
        job = self.write("layers.yaml", LAYERS)
        code, out, err = self.dlrun("--quiet", "--no-bind", "--run-dir", "layers", job)
        self.assertEqual(code, 0, err)
        # Whole: 4 * 27 + 4 of the convolution, 4 biases of the sum. Halves of 144 * 30 + 30 and of 30 * 4.
        self.assertIn("tensor groups of 2 ranks: 2351 of the model's 4586 parameters on rank 0", out)
        code, _, err = self.dlrun("--quiet", "--no-bind", "--run-dir", "whole", "--set", "parallel.tensor=1", "--set", "resources.tasks-per-node=1", job)
        self.assertEqual(code, 0, err)
        losses = [self.losses(run) for run in ("layers", "whole")]
        self.assert_alike(*losses)

    def test_what_cannot_be_divided_is_refused_before_a_rank_starts(self):
        for here, there, said in (
                ("key-heads: 4", "key-heads: 1", r"tensor.yaml:6:5: .*1 key-heads cannot be divided by 2 ranks of a tensor group"),
                ("name: adamw", "name: lamb", "train.optimizer is lamb"),
                ("device: cpu", "device: cuda", "tensor-parallel training runs on CPUs only so far")):
            self.write("tensor.yaml", JOB.replace(here, there))
            code, out, err = self.dlrun("--no-bind", "--tasks-per-node", "2", "--tensor-parallel", "2", self.job)
            self.assertEqual(code, 65, err)
            self.assertRegex(err, said)
            self.assertNotIn("[worker", out)


if __name__ == "__main__":
    support.main()
