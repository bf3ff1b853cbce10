#!/usr/bin/env python3
"""`dlrun submit --chain auto`: how many jobs a training takes, by the record of an earlier run or by a probe, and what it refuses."""
import json
import os

import support

JOB = """name: small
framework: builtin
resources: {nodes: 1, tasks-per-node: 1, cpus-per-task: 1}
launch: {bind: false}
checkpoint: {dir: ckpt, every: 10min}
train:
  model: mnist-cnn
  data: {format: synthetic, samples: 640}
  batch: 16
  epochs: 4
  optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
  seed: 5
"""


def record(step=0.5, checkpoint=4):
    timing = {"start": 10, "steps": 100, "seconds_per_step": step, "checkpoint": checkpoint, "held": 1}
    return {"name": "small", "framework": "builtin", "last_progress": {"step": 100, "steps": 160, "epochs": 4},
            "attempts": [{"step_timing": timing, "ranks": [{}]}]}


class ChainForecast(support.Case):
    def setUp(self):
        super().setUp()
        self.write("job.yaml", JOB)

    def measured(self, **values):
        os.makedirs(os.path.join(self.folder, "runs/small-1"))
        self.write("runs/small-1/record.json", json.dumps(record(**values)))

    def submit(self, *flags):
        return self.dlrun("submit", "--scheduler", "slurm", "--chain", "auto", "--dry-run", *flags, "job.yaml")

    def forecast(self, *flags):
        code, out, err = self.submit("--json", *flags)
        self.assertEqual(code, 0, err)
        answer = json.loads(out)
        return answer["forecast"], answer["script"], answer["job"]

    def test_links_interval_and_end_follow_from_an_earlier_run(self):
        self.measured()
        out, script, job = self.forecast("--epochs", "25", "--walltime", "2min")
        self.assertEqual((out["steps"], out["training"], out["links"]), (1000, 500, 6))
        self.assertEqual((out["max_links"], out["checkpoint_interval"], out["checkpoint_rule"]), (8, 600, "stated"))
        self.assertTrue(out["measured"].endswith("runs/small-1/record.json"))
        self.assertEqual(job["train"]["epochs"], 25)
        self.assertIn("--time=0:02:00", script)
        self.assertFalse(self.exists("runs/small-1/job.sh"))

    def test_a_range_of_nodes_has_a_forecast_for_each_size_that_was_measured(self):
        for ranks, step in ((1, 0.5), (2, 0.3)):
            os.makedirs(os.path.join(self.folder, f"runs/small-{ranks}"))
            one = record(step=step)
            one["attempts"][0]["ranks"] = [{}] * ranks
            self.write(f"runs/small-{ranks}/record.json", json.dumps(one))
        out, script, _ = self.forecast("--nodes", "1-2", "--set", "train.shards=4", "--epochs", "25", "--walltime", "2min")
        self.assertIn("#SBATCH --nodes=1-2", script)
        self.assertEqual([(size["ranks"], size["links"]) for size in out["sizes"]], [(1, 6), (2, 4)])
        self.assertEqual((out["links"], out["training"]), (6, 500))  # enough for the slowest

    def test_people_are_told_the_same(self):
        self.measured()
        code, out, err = self.submit("--epochs", "25", "--walltime", "2min", "--mtbf", "2h")
        self.assertEqual(code, 0, err)
        self.assertIn("--spec=", out)
        _, _, job = self.forecast("--epochs", "25", "--walltime", "2min", "--mtbf", "2h")
        self.assertRegex(job["checkpoint"]["every"], r"^[0-9.]+s$")
        for text in ("measured    500ms per step, 4.0s per checkpoint, 10.0s to start", "of 2m00s each for 1000 steps",
                     "by Daly (2006) for a failure every 2h00m; 2m00s by Young (1974)", "plus an unknown time in the queue"):
            self.assertIn(text, err)

    def test_the_length_is_the_job_s_where_none_is_given_and_one_link_holds_it(self):
        self.measured()
        out, script, job = self.forecast()
        self.assertEqual((out["steps"], out["links"], out["walltime"]), (160, 1, 120))
        self.assertIn("--time=0:02:00", script)
        self.assertEqual(job["checkpoint"]["every"], "10min")

    def test_a_walltime_that_cannot_hold_one_checkpoint_is_refused(self):
        self.measured(checkpoint=40)
        code, out, err = self.submit("--walltime", "1min")
        self.assertEqual((code, out), (66, ""))
        self.assertIn("a walltime of 1m00s cannot hold one checkpoint", err)
        self.assertIn("hint: request 2m00s or more: resources.walltime", err)

    def test_more_links_than_the_job_allows_are_refused(self):
        self.measured()
        code, _, err = self.submit("--walltime", "2min", "--epochs", "25", "--set", "chain.max-links=5")
        self.assertEqual(code, 66)
        self.assertIn("the training needs 6 links, and chain.max-links is 5", err)

    def test_without_a_run_to_go_by_it_says_how_to_get_one(self):
        code, out, err = self.submit()
        self.assertEqual((code, out), (65, ""))
        self.assertIn("no earlier run of this job measured the time of a step and of a checkpoint", err)
        self.assertIn("--probe", err)

    def test_a_probe_measures_here_and_a_record_of_it_serves_again(self):
        code, out, err = self.submit("--json", "--probe", "1h", "--epochs", "4")  # it is done long before
        self.assertEqual(code, 0, err)
        first = json.loads(out)["forecast"]
        self.assertGreater(first["step_timing"]["seconds_per_step"], 0)
        self.assertGreater(first["step_timing"]["checkpoint"], 0)
        self.assertEqual(first["steps"], 160)
        self.assertFalse(self.exists("ckpt"))
        again, _, _ = self.forecast("--measured", first["measured"])
        self.assertEqual(again["step_timing"], first["step_timing"])


if __name__ == "__main__":
    support.main()
