#!/usr/bin/env python3
"""Tensor-parallel training with started ranks: losses of the undivided model, checkpoints that any number of parts loads,
and what cannot be divided is refused before a rank starts."""
import json
import os

import model_parallel
import support

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


class TensorParallel(model_parallel.ModelParallel):
    def test_started_ranks_train_as_one_does(self):
        whole = self.train("whole", 1, 1)[1]
        self.assertLess(whole[-1], 0.8 * whole[0])
        self.assert_alike(self.train("two", 2, 2)[1], whole)
        self.assert_alike(self.train("four", 4, 2)[1], self.train("data", 2, 1)[1])

    def test_ranks_with_slices_of_the_positions_train_as_one_does(self):
        dropout = ("--set", "train.model.transformer.dropout=0.1")
        whole = self.train("whole", 1, 1, *dropout)[1]
        sequence = ("--set", "parallel.sequence=on", *dropout)
        out, losses = self.train("two", 2, 2, *sequence)
        self.assertRegex(out, r"tensor groups of 2 ranks: .*, and a slice of the positions between divided layers")
        self.assert_alike(losses, whole)
        self.assertAlmostEqual(self.record("two")["result"]["validation_loss"], self.record("whole")["result"]["validation_loss"], 4)
        self.assert_alike(self.train("four", 4, 2, "--pipeline-parallel", "2", "--set", "train.accumulate=2", *sequence)[1],
                          self.train("accumulated", 1, 1, "--set", "train.accumulate=2", *dropout)[1])

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
        self.assert_refused((
            ("key-heads: 4", "key-heads: 1", r"job.yaml:6:5: .*1 key-heads cannot be divided by 2 ranks of a tensor group"),
            ("name: adamw", "name: lamb", r"job.yaml:\d+:\d+: parallel.tensor is above 1, and train.optimizer is lamb"),
            ("device: cpu", "device: cuda\n  allreduce: {dtype: bf16}", "parallel.tensor is above 1 and train.allreduce.dtype is bf16, which is not supported on GPUs so far")), "--tasks-per-node", "2", "--tensor-parallel", "2")
        self.assert_refused((
            ("context: 16", "context: 15", r"job.yaml:6:5: .*sequences of 15 positions cannot be divided by 2 ranks of a tensor group"),
            ("context: 16}\n  device: cpu", "context: 15}\n  device: cuda", r"job.yaml:6:5: .*sequences of 15 positions cannot be divided")),
            "--set", "parallel.sequence=on", "--tasks-per-node", "2", "--tensor-parallel", "2")
        self.assert_refused((("device: cpu", "device: cuda\n  shards: 4", "train.optimizer.state is sharded and train.shards is set, which is not supported together on GPUs so far"),),
                            "--set", "train.optimizer.state=sharded", "--tasks-per-node", "2", "--tensor-parallel", "2")

    def test_sharded_state_in_tensor_groups_has_the_bits_of_replicated_state(self):
        self.environment["OMP_NUM_THREADS"] = "1"  # bits rest on the threads per rank
        def train(run, state, *more):
            return self.train(run, 4, 2, "--set", f"train.optimizer.state={state}", "--set", f"checkpoint.dir={run}-ckpt", *more)

        def weights(run):
            self.tool("--export", f"{run}.safetensors", "--checkpoint", f"{run}-ckpt")
            with open(os.path.join(self.folder, f"{run}.safetensors"), "rb") as file:
                return file.read()

        _, whole = train("replicated", "replicated", "--set", "checkpoint.every=20steps")
        out, losses = train("sharded", "sharded", "--set", "checkpoint.every=20steps")
        self.assertRegex(out, r"optimizer state: .* that 2 ranks have together")
        self.assertEqual(losses, whole)
        self.assertEqual(weights("sharded"), weights("replicated"))
        names = os.listdir(os.path.join(self.folder, "sharded-ckpt", sorted(os.listdir(os.path.join(self.folder, "sharded-ckpt")))[-1]))
        self.assertEqual(sum(name.endswith("-of-00004.safetensors") for name in names), 8, names)
        validation = self.record("sharded")["result"]["validation_loss"]
        for run, ranks, tensor, state in (("one", 1, 1, "replicated"), ("two", 2, 1, "sharded"), ("four", 4, 4, "replicated")):  # nothing is left to train
            self.train(run, ranks, tensor, "--set", f"train.optimizer.state={state}", "--set", "checkpoint.dir=sharded-ckpt")
            self.assertAlmostEqual(self.record(run)["result"]["validation_loss"], validation, 4)

    def test_what_layers_say_of_their_division_is_checked_without_groups_too(self):
        job = self.write("layers.yaml", LAYERS.replace("parallel: {tensor: 2}", "").replace("split: columns", "split: rows"))
        code, _, err = self.dlrun("--quiet", "--no-bind", job)
        self.assertEqual(code, 65, err)
        self.assertRegex(err, r"layers.yaml:.*'split: rows' reads divided features, and what it reads is whole")


if __name__ == "__main__":
    support.main()
