#!/usr/bin/env python3
"""An elastic training loses ranks at moments that are no step: while they start, regroup, evaluate and write a checkpoint; and gets
others in their places. Each run is stopped at some step, and has there the bits of one that has lost nobody."""
import glob
import hashlib
import json
import os
import pathlib
import signal

import support
from support import wait_until
from training_test import make_data

JOB = """\
name: elastic
framework: builtin
resources: {tasks-per-node: 4}
launch: {bind: false, lost-after: 60s, grace: 60s}
checkpoint: {dir: ckpt, keep: 2}
elastic: {min-ranks: 1, restarts: 0}
environment: {set: {OMP_NUM_THREADS: "1"}}
train:
  model: {name: small, layers: [{convolution: 8, kernel: 3, padding: 1}, batch-norm, relu, {max-pool: 2}, {dropout: 0.25}, {fully-connected: classes}]}
  data: {format: idx, dir: data}
  batch: 8
  epochs: 100000
  mllog: true
  optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
  seed: 5
"""


class Elastic(support.Case):
    @classmethod
    def setUpClass(cls):
        cls.data = os.path.join(os.environ["E2E_SCRATCH"], f"elastic-bars-{os.getpid()}")
        make_data(cls.data, train=80, test=640)  # most of the time is evaluation

    def setUp(self):
        super().setUp()
        os.symlink(self.data, os.path.join(self.folder, "data"))
        self.write("job.yaml", JOB)

    def begin(self, run="run", *flags):
        self.head = self.start("--run-dir", run, *flags, "job.yaml")
        return self.head

    def so_far(self, run="run"):
        lines = self.read(f"{run}/events.jsonl").splitlines(keepends=True) if self.exists(f"{run}/events.jsonl") else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def named(self, name, run="run"):
        return [event for event in self.so_far(run) if event["event"] == name]

    def reports(self, word, run="run"):
        return [event["report"] for event in self.named("report", run) if word in event["report"]]

    def happens(self, condition, what):
        wait_until(lambda: self.head.poll() is not None or condition(), what)
        self.assertIsNone(self.head.poll(), f"the training is over before {what}")

    def trains(self):
        self.happens(lambda: any(report["phase"] == "training" for report in self.reports("phase")), "it trains")

    def signal(self, rank, number=signal.SIGKILL, run="run"):
        os.kill(next(event["pid"] for event in self.named("started", run) if event["rank"] == rank), number)

    def kill(self, rank):
        """And waits until the head knows it."""
        self.signal(rank)
        self.happens(lambda: any(rank in event["ranks"] for event in self.named("lost")), f"rank {rank} is lost")

    def goes_on(self, ranks):
        """These ranks have completed a step."""
        def step_is_complete():
            events = self.so_far()
            begun = [number for number, event in enumerate(events) if event["event"] == "new_world" and event["ranks"] == ranks]
            return begun and any(event["event"] == "went_on" for event in events[begun[0]:])

        self.happens(step_is_complete, f"{ranks} have completed a step")

    def printed(self, run="run"):
        """By any rank."""
        return "".join(pathlib.Path(path).read_text() for path in glob.glob(os.path.join(self.folder, run, "logs", "*")))

    def bits(self, checkpoint):
        files = sorted(glob.glob(os.path.join(self.folder, checkpoint, "*.safetensors")))
        self.assertEqual(len(files), 2, checkpoint)
        return [hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() for path in files]

    def ends_as_the_undisturbed(self):
        self.assertEqual(self.dlrun("stop", "run")[0], 0)
        _, err = self.head.communicate()
        self.assertEqual(self.head.returncode, 75, err)
        steps = self.reports("saved")[-1]["saved"]
        self.begin("whole", "--set", "checkpoint.dir=whole-ckpt", "--set", f"checkpoint.every={steps}steps", "--set", "checkpoint.keep=1000")
        self.happens(lambda: self.reports("saved", "whole"), "the undisturbed run has come as far")
        self.assertEqual(self.dlrun("stop", "whole", "--now")[0], 0)
        self.head.communicate()
        self.assertEqual(self.bits(f"ckpt/step-{steps:08}"), self.bits(f"whole-ckpt/step-{steps:08}"))
        return err

    def test_ranks_that_are_lost_before_the_first_step_are_not_missed(self):
        """One as soon as it runs, and the first one while it waits for the checkpoint folder, which another training uses."""
        other = self.start("--run-dir", "other", "--tasks-per-node", "1", "--set", "elastic={}", "job.yaml")
        wait_until(lambda: other.poll() is not None or self.reports("phase", "other"), "the other one has the folder")
        self.begin()
        self.happens(lambda: any(event["rank"] == 3 for event in self.named("started")), "rank 3 runs")
        self.kill(3)
        self.happens(lambda: "waiting 20.0s for it to end" in self.printed(), "rank 0 waits for the folder")
        self.kill(0)
        self.signal(0, run="other")  # without a checkpoint
        other.communicate()
        self.trains()
        self.goes_on([1, 2])
        self.assertEqual(self.named("went_on")[0]["step"], 1, "a step was done before the ranks were lost")
        self.ends_as_the_undisturbed()

    def test_ranks_that_are_lost_while_others_regroup_evaluate_or_write_are_not_missed(self):
        self.environment.update({"LD_PRELOAD": os.environ["E2E_SHIMS"], "DLRUN_TEST_SHIM": "held-fsync", "DLRUN_TEST_HELD": f"{self.folder}/held"})
        self.begin()
        self.trains()
        self.write("held", "")
        self.write("run/checkpoint-request", "go on\n")
        self.happens(lambda: glob.glob(f"{self.folder}/held.*"), "the first rank writes a checkpoint")
        self.assertEqual(self.reports("saved"), [])
        self.kill(0)
        os.unlink(f"{self.folder}/held")
        self.happens(lambda: self.reports("saved"), "the next one writes a checkpoint")
        self.goes_on([1, 2, 3])
        evaluations = self.printed().count("eval_start")
        self.happens(lambda: self.printed().count("eval_start") > evaluations, "an evaluation begins")
        self.signal(3, signal.SIGSTOP)  # so that nothing goes on
        self.kill(1)
        self.kill(2)  # while the others regroup
        self.assertEqual(len(self.named("new_world")), 2)
        self.signal(3, signal.SIGCONT)
        self.goes_on([3])
        self.ends_as_the_undisturbed()

    def test_a_rank_is_started_again_in_the_place_of_one_that_was_killed_but_not_for_ever(self):
        self.begin("run", "--set", "elastic.restarts=1")
        self.trains()
        self.kill(2)
        self.happens(lambda: self.named("joined"), "another rank has joined")
        self.goes_on([0, 1, 3, 4])
        self.kill(4)
        self.goes_on([0, 1, 3])
        err = self.ends_as_the_undisturbed()
        self.assertRegex(err, r"rank 4 on \S+ joined after \S+; going on with 4 ranks on 1 nodes")
        self.assertIn("no rank is started there again: those before were lost 1 times in a row (elastic.restarts)", err)


if __name__ == "__main__":
    support.main()
