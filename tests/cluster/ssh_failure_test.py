#!/usr/bin/env python3
"""The same failures as in a Slurm job, in runs whose agents were brought by ssh: the culprit is named in bounded time, and
nothing is left. Besides, what only ssh can lose."""
import os
import signal

import failure_test
import support
from support import DLRUN


class SshFailure(failure_test.Failure):
    slurm, way = False, ()

    def test_the_ssh_server_s_listener_is_killed(self):
        """Sessions that are there go on."""
        process = self.job(extra="[ $DLRUN_RANK = 5 ] && { sleep 2; exit 7; };")
        for pid, (_, words) in self.cluster.processes("n2").items():
            if "[listener]" in words:
                os.kill(pid, signal.SIGKILL)
        self.addCleanup(self.cluster.run, "n2", ["/usr/sbin/sshd", "-f", "/mnt/etc/sshd_config", "-E", "/mnt/log/sshd.n2.log"], "root")
        code, err = self.end_of(process)
        self.assertEqual(code, 7)
        self.assertIn("worker 5 (rank 5) on n3: exit code 7", err)

    def test_a_session_s_ssh_server_is_killed(self):
        process = self.job()
        for pid, (_, words) in self.cluster.processes("n2").items():
            if words.startswith("sshd: dlruser"):
                os.kill(pid, signal.SIGKILL)
        code, err = self.end_of(process)
        self.assertEqual(code, 71)
        self.assertRegex(err, "n2: its ssh connection was lost: ")

    def test_ctrl_c_twice(self):
        process = self.job(extra="trap '' TERM INT;")
        head = [pid for pid, (_, words) in self.cluster.processes("head").items() if words.startswith(f"{DLRUN} --allocation")]
        os.kill(head[0], signal.SIGINT)
        os.kill(head[0], signal.SIGINT)
        code, err = self.end_of(process)
        self.assertEqual(code, 130)
        self.assertIn("SIGINT", err)


if __name__ == "__main__":
    support.main()
