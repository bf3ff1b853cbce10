#!/usr/bin/env python3
"""The built-in runtime over the nodes of a Slurm job, under both MPIs, and a node that dies in the middle of a training."""
import os
import re

import support
from cluster import wait_until
from support import DLRUN

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

    def test_a_node_that_dies_is_replaced_and_the_training_carries_on(self):
        self.write("job.yaml", JOB.format(mpi="pmix", epochs=4))
        process = self.train("run", "--retries", "1", nodes=3)
        saved = lambda: [int(step) for step in re.findall(r'"saved":(\d+)', self.read("run/events.jsonl"))] \
            if os.path.exists(self.folder + "/run/events.jsonl") else []
        wait_until(lambda: process.poll() is not None or (saved() and saved()[-1] >= 30))
        self.cluster.crash("n2")
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("attempt 2 of 2 without n2", err)
        self.assertRegex(out, r"carrying on from \S+: step [3-7]\d")
        record = self.record()
        self.assertEqual([attempt["exit_code"] for attempt in record["attempts"]], [71, 0])
        self.assertEqual([rank["host"] for rank in record["attempts"][1]["ranks"]], ["n1", "n3"])
        self.assertEqual(record["result"]["steps"], 80)
        self.cluster.boot("n2")
        self.cluster.wait_idle()


if __name__ == "__main__":
    support.main()
