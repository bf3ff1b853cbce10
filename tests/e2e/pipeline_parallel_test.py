#!/usr/bin/env python3
"""Pipelines with started ranks: losses of one rank that accumulates as much, checkpoints that any other division loads, and what
cannot be cut is refused before a rank starts."""
import json
import os
import re

import images_test
import model_parallel
import support


class PipelineParallel(model_parallel.ModelParallel):
    def setUp(self):
        super().setUp()
        self.write("job.yaml", model_parallel.JOB.replace("clip-norm: 1.0", "clip-norm: 1.0\n  accumulate: 4"))

    def stages(self, run, ranks, stages, *more):
        return self.train(run, ranks, 1, "--pipeline-parallel", str(stages), *more)

    def test_started_stages_train_as_one_rank_does(self):
        self.environment["OMP_NUM_THREADS"] = "1"  # bits rest on the threads per rank
        whole = self.train("whole", 1, 1)[1]
        self.assertLess(whole[-1], 0.8 * whole[0])
        out, losses = self.stages("two", 2, 2)
        self.assertEqual(losses, whole)
        self.assertRegex(out, r"pipelines of 2 stages with \d+, \d+ parameters; with train.accumulate 4, a stage waits for the others 25 % ")
        self.assertEqual(self.record("two")["result"]["validation_loss"], self.record("whole")["result"]["validation_loss"])
        self.assert_alike(self.stages("three", 3, 3, "--set", "train.model.transformer.tied=true")[1],
                          self.train("tied", 1, 1, "--set", "train.model.transformer.tied=true")[1])
        over_tcp = ("--set", "environment.set.DLRUN_NODE_RANKS=1")
        self.assert_alike(self.train("all", 8, 2, "--pipeline-parallel", "2", "--set", "train.optimizer.state=sharded", *over_tcp)[1],
                          self.train("data", 2, 1)[1])

    def test_stages_begin_where_the_job_says(self):
        cut = ("--set", "train.pipeline.cut=[model.layers.0.post_attention_layernorm]")
        out, losses = self.stages("late", 2, 2, *cut)
        evenly, whole = self.stages("evenly", 2, 2)[0], self.train("whole", 1, 1)[1]
        self.assert_alike(losses, whole)
        parameters = [re.search(r"stages with (\d+, \d+) parameters", text)[1] for text in (out, evenly)]
        self.assertEqual(parameters[0], f"{257 * 32 + 32 + 4 * 32 * 32}, {32 + 3 * 48 * 32 + 32 + 257 * 32}")
        self.assertNotEqual(*parameters)

    def test_stages_behind_the_first_have_the_labels_of_images_that_they_do_not_decode(self):
        self.environment["OMP_NUM_THREADS"] = "1"
        images_test.make_photos(os.path.join(self.folder, "photos"))
        lines = []
        for stages in (1, 2):
            job = images_test.JOB.format(data="format: images, dir: photos, memory: 1KiB", checkpoint=f"ckpt-{stages}")
            self.job = self.write("job.yaml", job.replace("batch: 16\n  epochs: 6", "batch: 8\n  accumulate: 2\n  mixup: 0.2\n  epochs: 2\n  device: cpu"))
            self.stages(f"photos-{stages}", stages, stages)
            found = [json.loads(line) for line in self.read(f"photos-{stages}/metrics.jsonl").splitlines()]
            lines.append([line[key] for key in ("loss", "test_loss") for line in found if key in line])
        self.assertEqual(*lines)
        self.assertGreater(len(lines[0]), 4)

    def test_a_training_goes_on_at_another_division(self):
        def train(run, ranks, tensor, stages, epochs, *more):
            self.train(run, ranks, tensor, "--pipeline-parallel", str(stages), "--set", f"train.epochs={epochs}", "--set", "checkpoint.dir=ckpt",
                       "--set", "checkpoint.every=20steps", *more)
            return self.record(run)["result"]["validation_loss"]

        first = train("first", 2, 1, 2, 1)
        newest = max(name for name in os.listdir(os.path.join(self.folder, "ckpt")) if name.startswith("step-"))
        self.assertIn("model-00002-of-00002.safetensors", os.listdir(os.path.join(self.folder, "ckpt", newest)))
        second = train("second", 4, 2, 2, 2, "--set", "train.optimizer.state=sharded")
        self.assertLess(second, 0.95 * first)
        for run, ranks, tensor, stages in (("third", 1, 1, 1), ("fourth", 3, 1, 3), ("fifth", 2, 2, 1)):  # nothing is left to train
            self.assertAlmostEqual(train(run, ranks, tensor, stages, 2), second, 4)

    def test_what_cannot_be_cut_is_refused_before_a_rank_starts(self):
        self.assert_refused((
            ("device: cpu", "device: cuda\n  allreduce: {dtype: bf16}", "parallel.pipeline is above 1 and train.allreduce.dtype is bf16, which is not supported on GPUs so far"),
            ("clip-norm: 1.0", "shards: 4", "train.shards is set: sums of shards have no pipelines so far"),
            ("clip-norm: 1.0", "parameter-server: {}", "train.parameter-server is set"),
            ("epochs: 1", "benchmark: {steps: 2}", r"job.yaml:11:\d+: parallel.pipeline is above 1, and train.benchmark is set"),
            ("epochs: 1", "epochs: 1\n  pipeline: {cut: [model.layers.1]}", r"job.yaml:12:20: .*no layer 'model.layers.1'"),
            ("epochs: 1", "epochs: 1\n  pipeline: {cut: [model.norm, lm_head]}", r"job.yaml:12:\d+: train.pipeline.cut makes 3 stages, and parallel.pipeline is 2")), "--tasks-per-node", "2", "--pipeline-parallel", "2")
        self.assert_refused((("epochs: 1", "epochs: 1", r"job.yaml:6:5: model 'tiny' cannot be cut into 16 stages with parameters"),),
                            "--tasks-per-node", "16", "--pipeline-parallel", "16")


if __name__ == "__main__":
    support.main()
