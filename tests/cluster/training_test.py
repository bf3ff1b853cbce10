#!/usr/bin/env python3
"""The built-in runtime over the nodes of a Slurm job, under both MPIs, and a node that dies in the middle of a training."""
import hashlib
import json
import os
import pathlib
import re
import signal
import time

import support
from cluster import wait_until
from support import BIN, DLRUN

JOB = """\
name: small
framework: builtin
resources: {{nodes: 2, tasks-per-node: 1, cpus-per-task: 1}}  # the hosts claim 16 processors each, and share two
launch: {{mpi: {mpi}, lost-after: 3s, grace: 3s}}
checkpoint: {{dir: ckpt, every: 10steps, keep: 2}}
train:
  model: mnist-cnn
  data: {{format: synthetic, samples: 640}}
  batch: 16
  epochs: {epochs}
  optimizer: {{name: sgd, lr: 0.01, momentum: 0.9}}
  seed: 5
"""


class Training(support.Case):
    slurm = True
    nodes = 3  # ranks wait actively, so that more than the machine has processors would crawl

    def train(self, run, *flags, nodes=2):
        return self.start("salloc", "-Q", f"-N{nodes}", "--no-kill", DLRUN, "--run-dir", run, *flags, "job.yaml")

    def test_it_trains_over_two_nodes_under_both_mpis(self):
        for mpi in ("pmix", "pmi1"):
            with self.subTest(mpi):
                self.write("job.yaml", JOB.format(mpi=mpi, epochs=1))
                process = self.train(mpi + "-run", "--set", f"checkpoint.dir={mpi}")
                out, err = process.communicate()
                self.assertEqual(process.returncode, 0, err)
                self.assertEqual(self.record(f"{mpi}-run")["result"]["steps"], 20)
                self.nothing_left()

    def test_it_trains_over_two_nodes_without_any_mpi(self):
        """Files that are no libraries hide both MPIs from the loader."""
        for library in ("libmpich.so.12", "libmpi.so.12", "libmpi.so.40"):
            self.write(f"no-mpi/{library}", "")
        hidden = f"environment.set.LD_LIBRARY_PATH={self.folder}/no-mpi"
        self.write("job.yaml", JOB.format(mpi="auto", epochs=1))
        process = self.train("run", "--set", hidden)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("ranks use dlrun's own links over TCP", out)
        self.assertEqual(self.record()["result"]["steps"], 20)
        self.nothing_left()

    def test_parameter_servers_on_a_node_of_their_own_give_the_bits_of_none(self):
        for run, nodes, more in (("plain", 2, ""), ("served", 3, "roles: {ps: {count: 1, placement: dedicated}}\n")):
            self.write("job.yaml", JOB.format(mpi="pmi1", epochs=1) + more)
            process = self.train(run, "--set", f"checkpoint.dir=ckpt-{run}", "--set", f"resources.nodes={nodes}", nodes=nodes)
            out, err = process.communicate()
            self.assertEqual(process.returncode, 0, err)
        self.assertIn("parameter server", out)
        self.assertEqual(self.bits("ckpt-served"), self.bits("ckpt-plain"))
        ranks = self.record("served")["attempts"][0]["ranks"]
        self.assertEqual([(rank["role"], rank["host"]) for rank in ranks], [("worker", "n1"), ("worker", "n2"), ("ps", "n3")])
        self.nothing_left()

    def bytes_sent(self):
        """By the nodes, over their networks."""
        lines = (line.split() for host in ("n1", "n2") for line in self.cluster.run(host, ["cat", "/proc/net/dev"]).stdout.splitlines()[2:])
        return sum(int(words[9]) for words in lines if words[0] != "lo:")

    def test_ranks_that_communicate_in_fewer_steps_send_less(self):
        """Twenty sums of gradients, or two averages of weights and momentum."""
        sent = {}
        for run, more in (("plain", ""), ("fewer", "  sync: {every: 10}\n")):
            self.write("job.yaml", JOB.format(mpi="pmi1", epochs=1) + more)
            before = self.bytes_sent()
            process = self.train(run, "--set", f"checkpoint.dir=ckpt-{run}")
            _, err = process.communicate()
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(self.record(run)["result"]["steps"], 20)
            sent[run] = self.bytes_sent() - before
        print("bytes sent by the two nodes:", sent)
        self.assertLess(sent["fewer"], sent["plain"] / 2)
        self.nothing_left()

    def test_a_rank_inside_a_collective_is_ended_within_the_grace(self):
        """Its peer is stopped, so that it waits in its sum of gradients, where it cannot hear SIGTERM."""
        self.write("job.yaml", JOB.format(mpi="pmix", epochs=1000))
        process = self.train("run")
        wait_until(lambda: process.poll() is not None or self.saved())
        os.kill(self.process_on("n2", f"{BIN}/dlrun-train"), signal.SIGSTOP)
        began = time.monotonic()
        os.kill(self.process_on("head", DLRUN), signal.SIGTERM)
        _, err = process.communicate()
        print(f"a job in a collective was told to end: it had after {time.monotonic() - began:.1f} s, with a grace of 3 s")
        self.assertEqual(process.returncode, 143, err)
        self.assertEqual([event["signal"] for event in self.events() if event["event"] == "signalled" and event["host"] == "n1"], [15, 9])
        self.nothing_left()

    def test_all_ranks_end_when_one_is_killed(self):
        self.write("job.yaml", JOB.format(mpi="pmix", epochs=1000))
        process = self.train("run")
        wait_until(lambda: process.poll() is not None or self.saved())
        os.kill(self.process_on("n2", f"{BIN}/dlrun-train"), signal.SIGKILL)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 137, err)
        self.assertIn("worker 1 (rank 1) on n2: killed by SIGKILL (9)", err)
        self.nothing_left()

    def process_on(self, host, start):
        return next(pid for pid, (_, words) in self.cluster.processes(host).items() if words.startswith(start))

    def events(self):
        return [json.loads(line) for line in self.read("run/events.jsonl").splitlines()]

    def saved(self):
        """The steps of the checkpoints so far."""
        there = os.path.exists(self.folder + "/run/events.jsonl")
        return [int(step) for step in re.findall(r'"saved":(\d+)', self.read("run/events.jsonl"))] if there else []

    def bits(self, folder):
        newest = max(pathlib.Path(self.folder, folder).glob("step-*"))
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(newest.glob("*.safetensors"))]

    def test_an_elastic_training_goes_on_without_the_nodes_that_it_loses(self):
        """A rank is killed, then the node of the first rank is frozen; the bits are those of one rank that lost nobody."""
        job = JOB.format(mpi="auto", epochs=30) + "elastic: {min-nodes: 1, restarts: 0}\n"
        self.write("job.yaml", job.replace("elastic", "#").replace("batch: 16", "batch: 16\n  shards: 3"))
        process = self.train("whole", "--nodes", "1", "--set", "checkpoint.dir=whole-ckpt", nodes=1)
        self.assertEqual(process.wait(), 0, process.communicate()[1])
        self.write("job.yaml", job)
        process = self.train("run", "--nodes", "3", nodes=3)
        named = lambda name: [event for event in (self.events() if os.path.exists(self.folder + "/run/events.jsonl") else []) if event["event"] == name]
        wait_until(lambda: process.poll() is not None or self.saved())
        os.kill(self.process_on("n3", f"{BIN}/dlrun-train"), signal.SIGKILL)
        wait_until(lambda: process.poll() is not None or named("went_on"))
        self.cluster.freeze("n1")
        wait_until(lambda: process.poll() is not None or len(named("went_on")) == 2)
        print("after a killed rank and a frozen node the next steps were complete after", [round(event["seconds"], 2) for event in named("went_on")], "s")
        self.cluster.thaw("n1")
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        # The node that was frozen may have joined again meanwhile.
        self.assertEqual([event["ranks"] for event in named("new_world")][:3], [[0, 1, 2], [0, 1], [1]])
        self.assertEqual(self.bits("ckpt"), self.bits("whole-ckpt"))
        self.assertEqual(self.record()["result"]["test_loss"], self.record("whole")["result"]["test_loss"])
        self.cluster.wait_idle()

    def test_a_node_of_the_allocation_joins_by_srun(self):
        job = JOB.format(mpi="auto", epochs=10000).replace("batch: 16", "batch: 16\n  shards: 3")
        self.write("job.yaml", job + "elastic: {}\n")
        process = self.train("run", "--nodes", "2", nodes=3)
        wait_until(lambda: process.poll() is not None or self.saved())
        code, _, err = self.run_on(DLRUN, "grow", "run", "--hosts", "n3")
        self.assertEqual(code, 0, err)
        self.assertIn("n3\n", self.run_on("squeue", "-s", "-h", "-o", "%N")[1])  # a step of its own
        self.assertEqual(self.run_on(DLRUN, "stop", "run")[0], 0)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 75, err)
        self.assertRegex(err, r"rank 2 on n3 joined after \S+; going on with 3 ranks on 3 nodes")
        self.cluster.wait_idle()

    def test_a_node_that_dies_is_replaced_and_the_training_resumes(self):
        self.write("job.yaml", JOB.format(mpi="pmix", epochs=12))
        process = self.train("run", "--retries", "1", nodes=3)
        wait_until(lambda: process.poll() is not None or max(self.saved(), default=0) >= 30)
        self.cluster.crash("n2")
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("attempt 2 of 2 without n2", err)
        self.assertRegex(out, r"resuming from \S+: step ([3-9]|1\d|2[0-3])\d, ")
        record = self.record()
        self.assertEqual([attempt["exit_code"] for attempt in record["attempts"]], [71, 0])
        self.assertEqual([rank["host"] for rank in record["attempts"][1]["ranks"]], ["n1", "n3"])
        self.assertEqual(record["result"]["steps"], 240)
        self.cluster.boot("n2")
        self.cluster.wait_idle()


if __name__ == "__main__":
    support.main()
