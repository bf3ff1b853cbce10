"""What the tests of chains share: jobs to chain, and how to follow a chain to its end."""
import json
import os

import support
from cluster import wait_until
from support import DLRUN

# Saves one file a run; "again" three times, then done. What it does in its second run is the drill.
COUNTER = """name: counter
framework: plain
command: [sh, -c, 'mkdir -p ckpt; n=$(ls ckpt | wc -l); if [ "$n" = 1 ] && [ ! -e drilled ]; then touch drilled; {drill}; fi; touch ckpt/$n; [ $n -ge 3 ] || exit 75']
resources: {{nodes: 1, tasks-per-node: 1, walltime: 2min}}
checkpoint: {{dir: ckpt}}
chain: {{retries: {retries}}}
"""

TRAINING = """name: small
framework: builtin
resources: {nodes: 1, tasks-per-node: 1, cpus-per-task: 1, walltime: 5min}
checkpoint: {dir: ckpt, every: 10steps, keep: 2}
train:
  model: mnist-cnn
  data: {format: synthetic, samples: 640}
  batch: 16
  epochs: 4
  optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
  seed: 5
"""


class Following:
    """How a chain is followed; is_queued(name) is the scheduler's own word for whether a job of that name waits or runs."""

    def status(self, chain):
        code, out, err = self.run_on(DLRUN, "chain", "status", chain, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def wait_over(self, chain):
        status = wait_until(lambda: (now := self.status(chain))["state"] not in ("queued", "running") and now, 0.2)
        # Nothing of a chain that is over is left in the queue.
        wait_until(lambda: not self.is_queued(status["name"]), 0.2)
        return status

    def ends(self, status):
        return [link["end"] for link in status["links"]]


class Case(Following, support.Case):
    slurm = True
    nodes = 2

    def submit(self, job, links, *flags):
        self.write("job.yaml", job)
        code, out, err = self.run_on(DLRUN, "submit", "--json", "--chain", str(links), *flags, "job.yaml")
        self.assertEqual(code, 0, err)
        return json.loads(out)["chain"]

    def is_queued(self, name):
        return bool(self.run_on("squeue", "-h", "-t", "PENDING,RUNNING,COMPLETING", "-n", name)[1])

    def wait_drill(self, chain):
        drilled = lambda: os.path.exists(f"{self.folder}/drilled")
        wait_until(lambda: drilled() or self.status(chain)["state"] not in ("queued", "running"), 0.1)
        self.assertTrue(drilled(), self.status(chain))
