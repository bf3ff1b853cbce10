#!/usr/bin/env python3
"""The nodes of an elastic training become others while it trains: on request, in place of nodes that are lost, and where a node comes
back. Each run is stopped at some step, and has there the bits of one whose ranks stayed the same."""
import hashlib
import json
import os
import pathlib
import signal

import support
from cluster import wait_until
from support import DLRUN

JOB = """\
name: elastic
framework: builtin
resources: {nodes: 3, tasks-per-node: 1, cpus-per-task: 1}
launch: {lost-after: 5s, grace: 20s, bind: false}
checkpoint: {dir: ckpt, every: 10steps, keep: 2}
environment: {set: {OMP_NUM_THREADS: "1"}}
elastic: {min-nodes: 1}
train:
  model: mnist-cnn
  data: {format: synthetic, samples: 640}
  batch: 16
  shards: 4
  epochs: 1000
  optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
  ema: 0.99
  seed: 5
"""


class Elastic(support.Case):
    def train(self, hosts, run="run", *flags):
        self.write("job.yaml", JOB)
        process = self.start(DLRUN, "--via", "ssh", "--hosts", hosts, "--run-dir", run, *flags, "job.yaml")
        self.process = process
        wait_until(lambda: process.poll() is not None or self.reports("saved"))
        return process

    def events(self, name, run="run"):
        path = pathlib.Path(self.folder, run, "events.jsonl")
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["event"] == name]

    def reports(self, word, run="run"):
        return [event["report"] for event in self.events("report", run) if word in event["report"]]

    def happens(self, condition):
        wait_until(lambda: self.process.poll() is not None or condition())
        self.assertIsNone(self.process.poll(), "the training is over too early")

    def bits(self, folder):
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(pathlib.Path(self.folder, folder).glob("*.safetensors"))]

    def undisturbed(self, steps):
        """The same training up to the checkpoint behind this step, disturbed by nothing."""
        process = self.start(DLRUN, "--via", "ssh", "--hosts", "n1,n2,n3", "--run-dir", "whole", "--set", "checkpoint.dir=whole-ckpt",
                             "--set", f"checkpoint.every={steps}steps", "--set", "checkpoint.keep=1000", "job.yaml")  # few steps: it saves often
        wait_until(lambda: process.poll() is not None or self.reports("saved", "whole"))
        self.assertIsNone(process.poll(), process.poll() is not None and process.communicate())
        self.asked("stop", "whole", "--now")
        process.communicate()

    def metrics(self, run, steps):
        lines = map(json.loads, self.read(f"{run}/metrics.jsonl").splitlines())
        figures = [(line["step"], line.get("loss"), line.get("epoch_loss"), line.get("test_loss")) for line in lines if "step" in line]
        return [line for line in figures if line[0] <= steps]

    def asked(self, *words):
        code, out, err = self.run_on(DLRUN, *words)
        self.assertEqual(code, 0, err)
        return out, err

    def refused(self, code, text, *words):
        got, _, err = self.run_on(DLRUN, *words)
        self.assertEqual(got, code, err)
        self.assertIn(text, err)

    def ends_as_the_undisturbed(self):
        self.asked("stop", "run")
        _, err = self.process.communicate()
        self.assertEqual(self.process.returncode, 75, err)
        newest = max(path.name for path in pathlib.Path(self.folder, "ckpt").glob("step-*"))
        steps = self.reports("saved")[-1]["saved"]
        self.undisturbed(steps)
        self.assertTrue(self.bits(f"ckpt/{newest}"))
        self.assertEqual(self.bits(f"ckpt/{newest}"), self.bits(f"whole-ckpt/{newest}"))
        self.assertEqual(self.metrics("run", steps), self.metrics("whole", steps))
        return err

    def tell(self, what):
        waits = [round(event["seconds"], 3) for event in self.events("went_on")]
        print(f"{what}: joined after {[round(event['seconds'], 2) for event in self.events('joined')]} s; the next step was complete {waits} s after each change")

    def test_nodes_leave_and_join_by_command(self):
        self.train("n1,n2,n3")
        self.refused(64, "did you mean 'n2'", "stop", "run", "--hosts", "n22")
        out, _ = self.asked("stop", "run", "--hosts", "n2", "--json")
        self.assertEqual(json.loads(out)["stop"], "left")
        out, err = self.asked("grow", "run", "--hosts", "n4,n2")
        self.assertRegex(err, r"n4: rank \d joined after \S+")
        self.refused(64, "the training has 4 shards and 4 ranks", "grow", "run", "--hosts", "n5")
        self.refused(64, "n4 has ranks of the run already", "grow", "run", "--hosts", "n4")
        self.asked("stop", "run", "--hosts", "n1")  # the first rank, which has the files
        self.happens(lambda: len(self.events("went_on")) >= 3)
        err = self.ends_as_the_undisturbed()
        self.assertIn("rank 1 on n2 left on request; going on with 2 ranks on 2 nodes", err)
        self.assertNotIn("lost", err)
        self.tell("by command")
        attempt = self.record()["attempts"][-1]
        self.assertEqual([(loss["host"], loss["on_request"]) for loss in attempt["losses"]], [("n2", True), ("n1", True)])
        self.assertEqual(sorted(join["host"] for join in attempt["joins"]), ["n2", "n4"])
        out, _ = self.asked("status", "run")
        self.assertRegex(out, r"left       ranks \[1\] on n2: left on request")
        self.assertRegex(out, r"joined     ranks \[\d\] on n\d after")

    def test_a_spare_node_takes_the_place_of_a_lost_one_and_a_node_that_was_cut_off_comes_back(self):
        self.train("n1,n2,n3,n4", "run", "--nodes", "3")
        self.cluster.freeze("n2")
        self.happens(lambda: self.events("joined"))
        self.cluster.thaw("n2")
        self.cluster.cut("n3")
        self.happens(lambda: len(self.events("lost")) == 2)
        self.cluster.mend("n3")
        self.happens(lambda: len(self.events("joined")) == 2)
        self.ends_as_the_undisturbed()
        self.tell("a spare, and one that came back")
        self.assertEqual(self.events("joined")[0]["host"], "n4")
        self.assertIn(self.events("joined")[1]["host"], ("n2", "n3"))

    def test_what_was_killed_on_a_living_node_is_started_there_again(self):
        """A rank, and an agent with its rank."""
        self.train("n1,n2,n3")
        for number, (host, program) in enumerate((("n2", "dlrun-train"), ("n3", "dlrun-agent")), start=1):
            os.kill(self.process_on(host, program), signal.SIGKILL)
            self.happens(lambda: len(self.events("joined")) == number)  # pylint: disable=cell-var-from-loop
        self.happens(lambda: self.events("went_on")[-1]["time"] >= self.events("joined")[-1]["time"])
        self.ends_as_the_undisturbed()
        self.tell("started again")
        self.assertEqual([(event["host"], event["nodes_left"]) for event in self.events("joined")], [("n2", 3), ("n3", 3)])

    def test_a_node_that_dies_while_it_joins_disturbs_nobody(self):
        self.train("n1,n2,n3")
        grow = self.start(DLRUN, "grow", "run", "--hosts", "n4")
        self.happens(lambda: self.process_on("n4"))
        os.kill(self.process_on("n4"), signal.SIGKILL)
        _, err = grow.communicate()
        self.assertEqual(grow.returncode, 69, err)
        self.assertIn("ended before it had joined: killed by SIGKILL (9)", err)
        self.assertIn("n4 cannot join", self.ends_as_the_undisturbed())
        self.assertEqual([event["host"] for event in self.events("join_failed")], ["n4"])

    def test_a_node_that_is_lost_while_files_are_staged_is_replaced_by_one_that_copies_them(self):
        """The archive's second node cannot unpack it, which holds up all others until that node is gone."""
        self.on_head("mkdir staged && head -c 50000000 /dev/urandom > staged/random && tar -cf staged.tar staged")
        fake = self.write("fake-tar", f"#!/bin/sh\necho on > '{self.folder}/unpacks'\nexec sleep 1000\n")
        tar = self.cluster.run("n2", ["sh", "-c", "readlink -f $(command -v tar)"]).stdout.strip()
        self.cluster.run("n2", ["mount", "--bind", fake, tar], user="root")
        try:
            self.write("job.yaml", JOB + "stage: [{from: staged.tar, to: /tmp, unpack: true, as: un}]\n")
            self.process = self.start(DLRUN, "--via", "ssh", "--hosts", "n1,n2,n3,n4", "--nodes", "3", "--run-dir", "run", "job.yaml")
            self.happens(lambda: pathlib.Path(self.folder, "unpacks").exists())
            os.kill(self.process_on("n2", "dlrun-agent"), signal.SIGKILL)
            self.happens(lambda: self.events("joined"))
        finally:
            self.cluster.run("n2", ["umount", tar], user="root")
        self.happens(lambda: self.events("went_on"))
        self.ends_as_the_undisturbed()
        self.assertEqual([event["host"] for event in self.events("lost")], ["n2"])
        self.assertEqual(sorted(event["host"] for event in self.events("staged")), ["n1", "n3", "n4"])
        self.assertEqual([event["host"] for event in self.events("joined")], ["n4"])
        self.assertEqual(len(self.record()["attempts"]), 1)

    def on_head(self, line):
        code, _, err = self.run_on("sh", "-c", line)
        self.assertEqual(code, 0, err)

    def process_on(self, host, program="dlrun-train"):
        return next((pid for pid, (_, words) in self.cluster.processes(host).items() if pathlib.PurePath(words.split(" ")[0]).name == program
                     and pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == program), None)  # a reaper has its agent's command line


if __name__ == "__main__":
    support.main()
