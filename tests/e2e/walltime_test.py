#!/usr/bin/env python3
"""The end of the walltime: programs are asked to save in time, what ignores it is ended, and 75 means a checkpoint."""
import datetime
import os
import sys

import support

JOB = """\
name: small
framework: builtin
resources: {{tasks-per-node: {ranks}, cpus-per-task: 1}}
launch: {{bind: false}}
checkpoint: {{dir: ckpt, keep: 2}}
train:
  model: mnist-cnn
  data: {{format: synthetic, samples: 640}}
  batch: 16
  epochs: {epochs}
  optimizer: {{name: sgd, lr: 0.01, momentum: 0.9}}
  seed: 5
"""

CLIENT = """\
import sys, time
sys.path.insert(0, {client!r})
import dlrun_client
with dlrun_client.connect() as dlrun:
    for step in range(1000000):
        time.sleep(0.02)
        dlrun.report(step=step + 1, loss=float("inf") if step % 2 else 0.5, every=0)  # it may diverge
        if dlrun.checkpoint_requested():
            with dlrun.saving(step + 1):
                open("saved", "w").write(str(step + 1))
            dlrun.stop_if_requested()
"""


class Walltime(support.Case):
    def walltime(self, run="run"):
        return self.record(run)["attempts"][-1]["walltime"]

    def test_a_training_saves_in_time_at_the_same_step_on_all_ranks(self):
        self.write("job.yaml", JOB.format(ranks=2, epochs=1000000))
        code, out, err = self.dlrun("--walltime", "20s", "--run-dir", "run", "job.yaml")
        self.assertEqual(code, 75, err)
        ranks = self.record()["attempts"][0]["ranks"]
        self.assertEqual([rank["code"] for rank in ranks], [75, 75])
        facts = self.walltime()
        self.assertEqual((facts["stop"], facts["saved_when_asked"]), ("asked", True))
        self.assertGreater(facts["seconds_left_when_asked"], 3.9)
        self.assertIn(f"checkpoint of step {facts['saved']}: run the same command again", err)
        # One was tried early, to learn what it takes.
        first = next(event["report"] for event in self.events() if "saved" in event.get("report", {}))
        self.assertLess(first["saved"], facts["saved"])
        # The next run resumes at that step, and ends as an uninterrupted run does.
        _, out, _ = self.dlrun("--walltime", "12s", "--run-dir", "next", "job.yaml")
        self.assertIn(f"step {facts['saved']}, epoch", out)

    def test_a_run_in_two_parts_ends_with_the_bits_of_one(self):
        self.write("job.yaml", JOB.format(ranks=1, epochs=1000000))
        self.assertEqual(self.dlrun("--walltime", "8s", "--set", "checkpoint.lead=7s", "--run-dir", "first", "job.yaml")[0], 75)
        epochs = self.walltime("first")["saved"] // 40 + 1
        for run, folder in (("second", "ckpt"), ("whole", "whole-ckpt")):
            code, _, err = self.dlrun("--set", f"train.epochs={epochs}", "--set", f"checkpoint.dir={folder}", "--run-dir", run, "job.yaml")
            self.assertEqual(code, 0, err)
        self.assertEqual(self.record("second")["result"], self.record("whole")["result"])

    def test_a_wall_clock_that_is_set_while_the_run_is_on_changes_no_time(self):
        self.environment.update({"LD_PRELOAD": os.environ["E2E_SHIMS"], "DLRUN_TEST_SHIM": "clock-jump"})
        code, _, err = self.plain("sleep 2", "--walltime", "300s")
        self.assertEqual(code, 0, err)
        record = self.record()
        jump = datetime.datetime.fromisoformat(record["ended"]) - datetime.datetime.fromisoformat(record["began"])
        self.assertGreater(jump.total_seconds(), 600)
        self.assertLess(record["time"]["total"], 300)
        self.assertLess(record["time"]["idle"], 300)

    def test_a_walltime_that_is_long_changes_nothing(self):
        code, _, err = self.plain("exit 0", "--walltime", "8:00:00")
        self.assertEqual((code, self.walltime()["stop"]), (0, "none"), err)

    def test_what_ignores_everything_is_ended_before_the_end(self):
        code, _, err = self.plain('trap "" TERM; echo here; while :; do sleep 0.1; done', "--walltime", "8s")
        self.assertEqual(code, 137, err)
        self.assertIn("did not, was ended by SIGKILL: no checkpoint was reported", err)
        self.assertLess(self.record()["ended"], self.walltime()["end"])
        self.assertEqual(self.read("run/logs/0000-worker-0.log"), "here\n")

    def test_a_rank_without_checkpoints_dies_of_the_request_and_is_no_failure(self):
        code, _, err = self.plain("while :; do sleep 0.1; done", "--walltime", "8s", "--tasks-per-node", "2")
        self.assertEqual(code, 143, err)
        self.assertIsNone(self.record()["attempts"][0]["first_failure"])
        self.assertIn("no checkpoint was reported", err)

    def test_a_program_saves_on_the_signal(self):
        code, _, err = self.plain('trap "echo saved; exit 75" TERM; while :; do sleep 0.1; done', "--walltime", "8s")
        self.assertEqual(code, 75, err)

    def test_a_program_looks_at_the_file(self):
        code, _, err = self.plain('while [ ! -e "$DLRUN_CHECKPOINT_REQUEST" ]; do sleep 0.05; done; exit 75',
                                  "--walltime", "8s", "--set", "checkpoint.request=[file]")
        self.assertEqual(code, 75, err)

    def test_a_python_script_hears_it_on_the_control_channel(self):
        self.write("train.py", CLIENT.format(client=support.CLIENT))
        code, _, err = self.dlrun("--walltime", "8s", "--framework", "plain", "--run-dir", "run", "--", sys.executable, "train.py")
        self.assertEqual(code, 75, err)
        self.assertEqual(str(self.walltime()["saved"]), self.read("saved"))
        self.assertNotIn("signalled", self.read("run/events.jsonl"))

    def test_a_pytorch_training_stops_at_one_step_and_ends_with_the_same_bits(self):
        program = os.path.join(os.path.dirname(support.CLIENT), "examples", "pytorch-walltime.py")

        def train(run, steps, checkpoint, *flags):
            return self.dlrun(*flags, "--framework", "pytorch", "--tasks-per-node", "2", "--no-bind", "--run-dir", run,
                              "--", sys.executable, program, "--steps", str(steps), "--checkpoint", checkpoint)
        # As late as the slowest machine needs to have started; the request is heard between two steps.
        code, _, err = train("first", 10**9, "parts.pt", "--walltime", "60s", "--set", "checkpoint.lead=40s")
        self.assertEqual(code, 75, err)
        self.assertTrue(self.walltime("first")["saved_when_asked"])
        steps = self.walltime("first")["saved"] + 50
        code, out, err = train("second", steps, "parts.pt")
        self.assertEqual(code, 0, err)
        self.assertIn(f"resuming from step {steps - 50}", out)
        code, _, err = train("whole", steps, "whole.pt")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.record("second")["result"], self.record("whole")["result"])

    def test_an_older_checkpoint_is_enough_to_go_on_from(self):
        script = ("import json, os, socket, signal, time\n"
                  "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                  "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['DLRUN_CONTROL'])\n"
                  "s.sendall(b'{\"rank\": 0}\\n{\"saved\": 7, \"seconds\": 0.1}\\n')\n"
                  "while True: time.sleep(1)\n")
        code, _, err = self.dlrun("--walltime", "8s", "--framework", "plain", "--run-dir", "run", "--", sys.executable, "-c", script)
        self.assertEqual(code, 75, err)
        self.assertIn("did not, was ended by SIGKILL: stopped with a valid checkpoint of step 7", err)

    def test_a_failure_after_the_request_is_still_a_failure(self):
        code, _, err = self.plain('while [ ! -e "$DLRUN_CHECKPOINT_REQUEST" ]; do sleep 0.05; done; exit 3',
                                  "--walltime", "8s", "--set", "checkpoint.request=[file]")
        self.assertEqual(code, 3, err)

    def test_an_allocation_that_is_over_is_refused(self):
        self.write("alloc.json", '{"schema": "dlrun.allocation/1", "scheduler": "local", "nodes": [{"host": "localhost", "slots": 1}],'
                                 ' "end_time": "2001-01-01T00:00:00Z"}')
        code, _, err = self.plain("exit 0", "--allocation", "alloc.json")
        self.assertEqual(code, 66, err)
        self.assertIn("the allocation ended at 2001-01-01T00:00:00Z", err)


if __name__ == "__main__":
    support.main()
