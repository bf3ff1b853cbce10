#!/usr/bin/env python3
"""A real Slurm's time limit: the training saves before it, a limit that is extended is noticed in the running job, and a controller
that hangs harms neither. The limits are the shortest that Slurm has, one minute."""
import datetime
import json
import os
import signal

import support
from cluster import wait_until
from support import IN_SHELL

JOB = """\
name: small
framework: builtin
resources: {nodes: 1, tasks-per-node: 2, cpus-per-task: 1}
launch: {bind: false}
checkpoint: {keep: 2}
train:
  model: mnist-cnn
  data: {format: synthetic, samples: 640}
  batch: 16
  epochs: 1000000
  optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
  seed: 5
"""


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class Walltime(support.Case):
    slurm = True
    nodes = 2

    def submit(self, run):
        """The batch job's id: an allocation of one node for one minute, with dlrun as its batch script ends."""
        script = self.write(f"{run}.sh", f"#!/bin/bash\nexec {IN_SHELL} --set checkpoint.dir={run}-ckpt --run-dir {run} job.yaml\n")
        code, out, err = self.run_on("sbatch", "--parsable", "-N1", "--ntasks-per-node=2", "--time=1", "--output", f"{run}.out", script)
        self.assertEqual(code, 0, err)
        return out.strip()

    def events(self, run):
        if not os.path.exists(f"{self.folder}/{run}/events.jsonl"):
            return []
        return [json.loads(line) for line in self.read(f"{run}/events.jsonl").splitlines(True) if line.endswith("\n")]

    def has(self, run, event):
        return next((entry for entry in self.events(run) if entry["event"] == event), None)

    def said(self, run):
        """What went wrong before any rank was started."""
        text = self.read(f"{run}.out") if os.path.exists(f"{self.folder}/{run}.out") else ""
        return text if "error:" in text else ""

    def controller(self, number):
        for pid, (_, words) in self.cluster.processes("head").items():
            if "slurmctld" in words:
                os.kill(pid, number)

    def test_the_limit_its_extension_and_a_controller_that_hangs(self):
        self.write("job.yaml", JOB)
        for run in ("kept", "longer"):
            os.makedirs(f"{self.folder}/{run}-ckpt")
            os.chown(f"{self.folder}/{run}-ckpt", os.stat(self.folder).st_uid, os.stat(self.folder).st_gid)
        kept, longer = self.submit("kept"), self.submit("longer")
        wait_until(lambda: all(self.has(run, "started") or self.said(run) for run in ("kept", "longer")))
        self.assertEqual(self.said("kept") + self.said("longer"), "")
        extended = self.cluster.run("head", ["scontrol", "update", f"JobId={longer}", "TimeLimit=10"], user="root")
        self.assertEqual(extended.returncode, 0, extended.stderr)
        moved = wait_until(lambda: self.has("longer", "end_changed") or self.has("longer", "save_and_stop"))
        self.assertEqual(moved["event"], "end_changed")
        self.controller(signal.SIGSTOP)
        try:
            wait_until(lambda: os.path.exists(f"{self.folder}/kept/record.json"))
        finally:
            self.controller(signal.SIGCONT)
        record = self.record("kept")
        walltime = record["attempts"][0]["walltime"]
        # On a machine with other work the ranks may need help to leave after they have saved.
        self.assertEqual((record["exit_code"], walltime["saved_when_asked"]), (75, True), self.read("kept.out"))
        self.assertIn(walltime["stop"], ("asked", "ended", "killed"))
        self.assertLess(instant(record["ended"]), instant(walltime["end"]))
        self.assertIn(f"checkpoint of step {walltime['saved']}: run the same command again", self.read("kept.out"))
        parts = record["time"]
        self.assertAlmostEqual(sum(value for key, value in parts.items() if key != "total"), parts["total"], places=2)
        print(f"useful {parts['useful']:.1f} of {parts['total']:.1f} s; ended "
              f"{(instant(walltime['end']) - instant(record['ended'])).total_seconds():.1f} s before the limit")
        # The other one trains on beyond its first limit, until it is cancelled.
        first_limit = instant(walltime["end"]) + datetime.timedelta(seconds=2)
        wait_until(lambda: datetime.datetime.now(datetime.timezone.utc) > first_limit, 0.2)
        self.assertIsNone(self.has("longer", "save_and_stop"))
        self.assertFalse(os.path.exists(f"{self.folder}/longer/record.json"))
        self.run_on("scancel", "--full", longer)
        self.assertNotEqual(kept, longer)


if __name__ == "__main__":
    support.main()
