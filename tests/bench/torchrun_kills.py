"""The peer of lost_ranks: a training that torchrun runs on the same nodes, one agent and one rank each, and that restarts all ranks
(--max-restarts) whenever one is killed. One training serves for all kills. At its best: its agents look at their ranks ten times a
second, where each version's own interval is another one (5 s in 1.13)."""
import contextlib
import os
import pathlib
import signal
import time

import figures
import on_cluster

RANK = figures.ROOT / "tests/bench/torchrun_rank.py"
PYTHON = "/usr/bin/python3"
PORT = 29400
STEPS_AHEAD = 75  # at most, between the first step after a start and the next kill
LIMIT = 300  # seconds
REDIRECTS = ("--redirects=1", "--tee=1")  # of the other values, also the default, 1.13 makes None under Python 3.11


class Torchrun:
    """A training under way; kill() measures."""

    def __init__(self, cluster, folder, kills, rng):
        self.cluster, self.rng, self.steps = cluster, rng, pathlib.Path(folder, "steps")
        nodes = cluster.nodes
        words = [PYTHON, "-m", "torch.distributed.run", f"--nnodes={len(nodes)}", "--nproc_per_node=1", f"--max_restarts={kills + 1}",
                 "--monitor_interval=0.1", *REDIRECTS, f"--log_dir={folder}/logs", "--rdzv_backend=c10d", f"--rdzv_endpoint={nodes[0]}:{PORT}",
                 "--rdzv_id=lost-ranks", str(RANK), str(folder)]
        settings = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}
        self.log = open(pathlib.Path(folder, "torchrun.log"), "ab")  # pylint: disable=consider-using-with
        self.agents = [cluster.start(node, words, env=settings, stdout=self.log, stderr=self.log) for node in nodes]

    def done(self):
        """(time, step, start of its ranks) of each step that was complete, in order."""
        text = self.steps.read_text() if self.steps.exists() else ""
        return [(float(when), int(step), float(began)) for when, step, began in (line.split() for line in text[:text.rfind("\n") + 1].splitlines())]

    def wait_until(self, holds, what):
        end = time.monotonic() + LIMIT
        while not holds():
            if time.monotonic() > end or any(agent.poll() is not None for agent in self.agents):
                figures.fail(f"torchrun: no {what}: {pathlib.Path(self.log.name).read_text()[-2000:]}")
            time.sleep(0.02)

    def ranks(self, host):
        return [pid for pid, (_, words) in self.cluster.processes(host).items()
                if str(RANK) in words and "torch.distributed.run" not in words]

    def kill(self):
        """Kills a rank at a random moment: (seconds until the next step was complete, complete steps that were done again)."""
        before = len(self.done())
        ahead = self.rng.randrange(1, STEPS_AHEAD)
        self.wait_until(lambda: len(self.done()) >= before + ahead, "step")
        (pid,) = self.ranks(self.rng.choice(self.cluster.nodes))
        os.kill(pid, signal.SIGKILL)
        killed = time.time()
        *_, began = self.done()[-1]
        self.wait_until(lambda: self.done()[-1][2] != began, "step after a kill")
        first = next(line for line in self.done() if line[2] > killed)
        last = max(step for _, step, start in self.done() if start == began)
        return first[0] - killed, last - first[1] + 1


@contextlib.contextmanager
def training(cluster, folder, kills, rng):
    cluster.run("head", ["mkdir", "-p", str(folder)])
    started = Torchrun(cluster, folder, kills, rng)
    try:
        yield started
    finally:
        for agent in started.agents:
            agent.kill()
        for host in cluster.nodes:
            for pid, (uid, _) in cluster.processes(host).items():
                if uid == on_cluster.UID:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        for agent in started.agents:
            agent.wait()
