#!/usr/bin/env python3
"""Chains when what is around them breaks: Slurm's controller is killed and started again, and disks are full. The chain goes on, or
stops and says why; it never waits for ever silently."""
import os
import pathlib
import signal
import subprocess

import chain_support
import configuration
import support
from chain_support import COUNTER, TRAINING
from cluster import wait_until
from namespaces import ROOM
from support import DLRUN

SMALL = f"{ROOM}/small"  # a disk of two megabytes, which every host sees
# Fills the disk that it runs on, and would go on.
FILL = """name: counter
framework: plain
command: [sh, -c, 'head -c 4M /dev/zero >filled; exit 75']
resources: {{nodes: 1, tasks-per-node: 1, walltime: 2min}}
checkpoint: {{dir: {checkpoints}}}
"""
WAIT = "while [ ! -e go ]; do sleep 0.1; done"


class ChainDrills(chain_support.Case):
    @classmethod
    def setUpClass(cls):
        os.makedirs(SMALL)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=2m,mode=755,uid={configuration.UID},gid={configuration.UID}",
                        "tmpfs", SMALL], check=True)
        super().setUpClass()

    def setUp(self):
        super().setUp()
        subprocess.run(["find", SMALL, "-mindepth", "1", "-delete"], check=True)

    def end_controller(self, number):
        def controllers():
            return [pid for pid, (_, words) in self.cluster.processes("head").items() if words.startswith("slurmctld")]
        for pid in controllers():
            os.kill(pid, number)
        wait_until(lambda: not controllers())

    def start_controller(self):
        self.cluster.run("head", ["slurmctld"], user="root", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.run_on("sinfo", "-h")[0] == 0, 0.1)

    def ledger(self, chain):
        return pathlib.Path(chain, "chain.json").read_text()

    def restart_controller_under(self, number):
        chain = self.submit(COUNTER.format(drill=WAIT, retries=0), 9)
        self.wait_drill(chain)
        self.end_controller(number)
        self.assertEqual(self.status(chain)["state"], "running")  # no answer is no news
        self.start_controller()
        self.write("go", "")
        return self.wait_over(chain)

    def test_a_controller_that_is_started_again_in_the_middle(self):
        status = self.restart_controller_under(signal.SIGTERM)
        self.assertEqual((status["state"], self.ends(status)), ("done", ["again"] * 3 + ["done"]))

    def test_a_controller_that_is_killed_may_forget_jobs_but_not_without_a_word(self):
        """The controller saves its state every few seconds. Jobs of the chain that it has forgotten end, and never start."""
        status = self.restart_controller_under(signal.SIGKILL)
        if status["state"] != "done":  # a link that outlives its job cannot submit a successor
            self.assertRegex(status["reason"], r"job \d+ is gone from slurm without a recorded end|there is no next link: slurm refused")

    def test_a_link_that_ends_while_there_is_no_controller(self):
        chain = self.submit(COUNTER.format(drill=WAIT, retries=0), 9)
        self.wait_drill(chain)
        self.end_controller(signal.SIGTERM)
        self.write("go", "")
        wait_until(lambda: self.ledger(chain).count('"end": "again"') == 2)
        self.start_controller()
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)), ("done", ["again"] * 3 + ["done"]))

    def test_a_disk_without_room_for_a_checkpoint_ends_the_chain_with_that_reason(self):
        pathlib.Path(SMALL, "filled").write_bytes(bytes(1 << 20))
        status = self.wait_over(self.submit(TRAINING, 9, "--set", f"checkpoint.dir={SMALL}/ckpt"))
        self.assertEqual((status["state"], self.ends(status)), ("failed", ["failed"]), status)
        self.assertEqual(status["links"][0]["exit_code"], 74)
        self.assertIn("No space left on device", status["reason"])

    def test_a_disk_that_fills_up_under_the_ledger_ends_it_in_sight(self):
        """Nobody can write the end down; whoever asks is told, and once there is room the chain can be closed."""
        self.folder, home = SMALL, self.folder
        job = FILL.format(checkpoints=f"{home}/ckpt")
        chain = self.submit(job, 9)
        wait_until(lambda: self.status(chain)["state"] not in ("queued", "running"), 0.2)
        status = self.status(chain)
        self.assertEqual(status["state"], "stopped", status)
        self.assertRegex(status["reason"], r"job \d+ is gone from slurm without a recorded end; its output is in ")
        os.unlink(f"{SMALL}/filled")
        code, _, err = self.run_on(DLRUN, "chain", "stop", chain)
        self.assertEqual(code, 0, err)
        self.assertIn('"state": "stopped"', self.ledger(chain))


if __name__ == "__main__":
    support.main()
