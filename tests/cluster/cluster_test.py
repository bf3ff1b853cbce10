#!/usr/bin/env python3
"""The fixture itself: a cluster that is up in seconds, fails like a real one and leaves nothing behind."""
import os
import signal
import subprocess
import sys
import time
import unittest

import namespaces
from cluster import Cluster, wait_until

PROBE = "import namespaces; namespaces.enter(); from cluster import Cluster; import time\n" \
        "with Cluster(2) as c:\n    print('up', flush=True); time.sleep(1000)\n"


class Fixture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        begin = time.monotonic()
        cls.cluster = Cluster(4, slurm=True).__enter__()
        print(f"4 hosts with Slurm: up and idle in {time.monotonic() - begin:.1f} s")

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__()

    def ssh(self, host, *words, limit=60):
        return self.cluster.run("head", ["ssh", "-o", f"ConnectTimeout={limit}", host, *words])

    def test_slurm_starts_tasks_on_every_node(self):
        done = self.cluster.run("head", ["srun", "-N4", "--mpi=none", "hostname"])
        self.assertEqual(sorted(done.stdout.split()), ["n1", "n2", "n3", "n4"], done.stderr)

    def test_slurm_hands_out_gpus(self):
        done = self.cluster.run("head", ["srun", "-N2", "--gpus-per-node=2", "--mpi=none", "printenv", "CUDA_VISIBLE_DEVICES"])
        self.assertEqual(done.stdout.split(), ["0,1", "0,1"], done.stderr)

    def test_ssh_reaches_every_host_as_the_user(self):
        for host in self.cluster.nodes:
            self.assertEqual(self.ssh(host, "hostname; id -un").stdout.split(), [host, "dlruser"])

    def test_hosts_have_their_own_tmp_and_share_the_home(self):
        self.ssh("n1", "touch /tmp/mine ours")
        self.assertEqual(self.ssh("n2", "ls /tmp/mine ours").stdout.split(), ["ours"])

    def test_what_the_user_left_running_is_seen(self):
        wait_until(lambda: not self.cluster.strays())
        self.ssh("n3", "setsid sleep 1000 >&- 2>&- <&- &")
        wait_until(lambda: self.cluster.strays() == {"n3": ["sleep 1000"]})
        self.ssh("n3", "pkill sleep")
        wait_until(lambda: not self.cluster.strays())

    def test_a_host_that_is_cut_off_cannot_be_reached_and_comes_back(self):
        self.cluster.cut("n2")
        self.assertEqual(self.ssh("n2", "true", limit=2).returncode, 255)
        self.cluster.mend("n2")
        wait_until(lambda: self.ssh("n2", "true").returncode == 0)
        self.cluster.wait_idle()

    def test_a_frozen_host_accepts_connections_and_says_nothing(self):
        self.cluster.freeze("n3")
        self.assertIn("timed out during banner exchange", self.ssh("n3", "true", limit=2).stderr)
        self.cluster.thaw("n3")
        wait_until(lambda: self.ssh("n3", "true").returncode == 0)
        self.cluster.wait_idle()

    def test_a_crashed_host_boots_again(self):
        self.cluster.crash("n4")
        self.assertNotIn("n4", self.cluster.up())
        self.cluster.boot("n4")
        self.assertEqual(self.ssh("n4", "hostname").stdout, "n4\n")
        self.cluster.wait_idle()


class Ending(unittest.TestCase):
    def test_a_killed_program_leaves_nothing(self):
        environment = {k: v for k, v in os.environ.items() if k != namespaces.INSIDE}
        program = subprocess.Popen([sys.executable, "-c", "import sys; sys.argv = ['-c', sys.argv[1]]; exec(sys.argv[1])", PROBE],
                                   cwd=os.path.dirname(os.path.abspath(__file__)), env=environment, stdout=subprocess.PIPE, text=True)
        self.assertEqual(program.stdout.readline(), "up\n")
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        # Every process of it held the pipe's other end.
        self.assertEqual(program.stdout.read(), "")
        program.stdout.close()


if __name__ == "__main__":
    namespaces.enter()
    unittest.main()
