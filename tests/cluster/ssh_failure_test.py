#!/usr/bin/env python3
"""The same failures as in a Slurm job, in runs whose agents were started by ssh: the first failure is named in bounded time, and
no process is left. Besides, failures of ssh itself."""
import contextlib
import os
import signal
import subprocess
import threading
import time

import failure_test
import support
from cluster import wait_until
from configuration import UID
from namespaces import ROOM
from support import DLRUN


@contextlib.contextmanager
def loop_device():
    """An empty ext4 on a device of its own: a file system that can be stalled as a full server stalls."""
    image = f"{ROOM}/stall-{os.getpid()}.ext4"
    with open(image, "wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-E", f"root_owner={UID}:{UID}", image], check=True)
    device = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        os.unlink(image)


class SshFailure(failure_test.Failure):
    slurm, prefix = False, ()

    def test_the_ssh_server_s_listener_is_killed(self):
        """Sessions that are there go on."""
        process = self.job(extra=f"[ $DLRUN_RANK = 5 ] && {{ {failure_test.GO} exit 7; }};")
        for pid, (_, words) in self.cluster.processes("n2").items():
            if "[listener]" in words:
                os.kill(pid, signal.SIGKILL)
        self.addCleanup(self.cluster.run, "n2", ["/usr/sbin/sshd", "-f", "/mnt/etc/sshd_config", "-E", "/mnt/log/sshd.n2.log"], "root")
        self.write("go", "")
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

    def shared_folder_that_can_stall(self, hosts):
        """shared/ of the test's folder, for all these hosts; gives what stalls it and what ends that."""
        folder = f"{self.folder}/shared"
        self.cluster.run("head", ["mkdir", folder])
        device = self.enterContext(loop_device())
        for host in hosts:
            self.as_root(host, "mount", device, folder)
            self.addCleanup(self.as_root, host, "umount", folder)
        self.as_root("head", "rmdir", f"{folder}/lost+found")
        return lambda: self.as_root("head", "fsfreeze", "-f", folder), lambda: self.cluster.run("head", ["fsfreeze", "-u", folder], "root")

    def as_root(self, host, *words):
        done = self.cluster.run(host, words, user="root")
        self.assertEqual(done.returncode, 0, done.stderr)

    def wait_for_line(self, process, stream, words):
        lines = []
        for line in stream:
            lines.append(line)
            if words in line:
                return
        self.fail(f"it ended without printing '{words}': {''.join(lines)}{process.communicate()[1]}")

    def test_a_file_system_that_stalls_holds_up_logs_and_not_the_job(self):
        """Its run directory is there, and its standard output, as a batch job's is."""
        stall, thaw = self.shared_folder_that_can_stall(("head", "n1", "n2"))
        count = "i=0; until [ -e go ]; do echo line $((i += 1)); sleep 0.1; done; echo last $i"
        process = self.start("sh", "-c", 'exec "$@" >shared/out', "sh", DLRUN, "--hosts", "n1,n2", "--run-dir", "shared/run",
                             "--set", "launch.lost-after=3s", "--framework", "plain", "--", "sh", "-c", count)
        wait_until(lambda: "line 5\n" in self.shared_text("out") or process.poll() is not None)
        # A dlrun that waits for the file system itself says nothing: then the stall ends by this.
        last_resort = threading.Timer(60, thaw)
        last_resort.start()
        stall()
        began = time.monotonic()
        try:
            self.wait_for_line(process, process.stderr, "the run directory has not taken writes for")
            time.sleep(max(0, 10 - (time.monotonic() - began)))  # for longer than the agents wait for their head
        finally:
            last_resort.cancel()
            thaw()
        self.wait_for_line(process, process.stderr, "the run directory takes writes again")
        self.write("go", "")
        _, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        shown = self.shared_text("out").splitlines()
        for rank in range(2):
            lines = self.shared_text(f"run/logs/{rank:04}-worker-{rank}.log").splitlines()
            label = f"[worker {rank} n{rank + 1}] "
            self.assertEqual([line.removeprefix(label) for line in shown if line.startswith(label)], lines)
            last = int(lines.pop().removeprefix("last "))
            self.assertEqual(lines, [f"line {i + 1}" for i in range(last)])

    def shared_text(self, name):
        return self.cluster.run("head", ["cat", f"{self.folder}/shared/{name}"]).stdout

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
