#!/usr/bin/env python3
"""How runs on several nodes end when something breaks: in bounded time, with the first_failure named and nothing left anywhere."""
import contextlib
import json
import os
import pathlib
import signal
import time

import support
from cluster import wait_until
from configuration import UID
from support import DLRUN, parent_of

# Ranks that say that they run, have a child in a session of its own, and never end by themselves.
GO = "until [ -e go ]; do sleep 0.1; done;"  # once all of them run
RANKS = 'setsid sleep 1000 & echo running $DLRUN_RANK; {extra} while :; do sleep 0.1; done'


@contextlib.contextmanager
def little_memory(pid, most=64 << 20):
    """The process and its children share a control group that has no more."""
    unified = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    group = pathlib.Path("/sys/fs/cgroup" if unified else "/sys/fs/cgroup/memory") / f"dlrun-test-{os.getpid()}-{pid}"
    group.mkdir()
    try:
        (group / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(most))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


class Failure(support.Case):
    slurm, prefix = True, ("salloc", "-Q", "-N4", "--no-kill")

    def setUp(self):
        super().setUp()
        self.write("a.json", json.dumps({"schema": "dlrun.allocation/1", "scheduler": "slurm" if self.slurm else "hosts",
                                         "nodes": [{"host": f"n{i + 1}", "slots": 2, "cpus": 16} for i in range(4)]}))

    def usable_again(self):
        if self.slurm:
            self.cluster.wait_idle()

    def test_a_retry_sets_up_its_new_node_alone(self):
        """The node that stays takes over what its setup lines left; the spare one has its own."""
        script = ('echo "$(hostname) $LEFT" >>starts; echo $PPID >>agents-$(hostname); [ $DLRUN_ATTEMPT = 2 ] && exit 0; '
                  'while [ $(wc -l <starts) -lt 2 ]; do sleep 0.1; done; [ $DLRUN_RANK = 1 ] && kill -9 $PPID; sleep 1000')
        code, _, err = self.run_on(*self.prefix, DLRUN, "--allocation", "a.json", "--run-dir", "run", "--nodes", "2", "--tasks-per-node",
                                   "1", "--retries", "1", "--set", "launch.grace=1s", "--set",
                                   "environment.setup=[hostname >>setups, export LEFT=$(hostname)-$RANDOM]",
                                   "--framework", "plain", "--", "bash", "-c", script)
        self.assertEqual(code, 0, err)
        lines = lambda name: pathlib.Path(self.folder, name).read_text().splitlines()
        self.assertEqual(sorted(lines("setups")), ["n1", "n2", "n3"])
        starts = lines("starts")
        self.assertEqual([line.split()[0] for line in sorted(starts)], ["n1", "n1", "n2", "n3"])
        self.assertEqual(len(set(starts)), 3, starts)
        # The agent that was killed is a task of the same srun as the other; by ssh each has a session of its own.
        self.assertEqual(len(set(lines("agents-n1"))), 2 if self.slurm else 1)

    def job(self, extra="", limit="0s"):
        """dlrun in a Slurm job with two ranks on each of four nodes, once all of them run."""
        process = self.start(*self.prefix, DLRUN, "--allocation", "a.json", "--run-dir", "run", "--tasks-per-node", "2",
                             "--set", "launch.lost-after=4s", "--set", "launch.grace=2s", "--no-output-limit", limit,
                             "--framework", "plain", "--",
                             "bash", "-c", RANKS.format(extra=extra))
        self.lines = []
        while sum("running" in line for line in self.lines) < 8:
            line = process.stdout.readline()
            if not line:
                self.fail("it ended too early: " + process.stderr.read())
            self.lines.append(line)
        return process

    def job_that_goes_on(self, extra):
        process = self.job(extra)
        self.write("go", "")
        return process

    def end_of(self, process):
        begin = time.monotonic()
        out, err = process.communicate()
        self.seconds = time.monotonic() - begin
        print(f"{self.id().rpartition('.')[2]}: ended after {self.seconds:.1f} s")
        return process.returncode, err

    def agents(self, host):
        return [pid for pid, (_, words) in self.cluster.processes(host).items() if words.startswith(f"{DLRUN}-agent") and
                pathlib.Path(f"/proc/{pid}/comm").read_text() == "dlrun-agent\n"]

    def ranks(self, host):
        """Without children of theirs that are not setsid yet."""
        alike = [pid for pid, (_, words) in self.cluster.processes(host).items() if words.startswith("bash -c setsid")]
        return [pid for pid in alike if parent_of(pid) not in alike]

    def test_a_rank_that_fails(self):
        code, err = self.end_of(self.job_that_goes_on(f'[ $DLRUN_RANK = 5 ] && {{ {GO} echo last words; exit 7; }};'))
        self.assertEqual(code, 7)
        self.assertIn("worker 5 (rank 5) on n3: exit code 7\n  its last lines:\n", err)
        self.assertIn("last words", err)

    def test_a_rank_that_is_killed(self):
        process = self.job()
        os.kill(self.ranks("n2")[0], signal.SIGKILL)
        code, err = self.end_of(process)
        self.assertEqual(code, 137)
        self.assertRegex(err, r"on n2: killed by SIGKILL")

    def test_a_rank_that_crashes(self):
        code, err = self.end_of(self.job_that_goes_on(f'[ $DLRUN_RANK = 3 ] && {{ ulimit -c 0; {GO} kill -SEGV $$; }};'))
        self.assertEqual(code, 139)
        self.assertIn("worker 3 (rank 3) on n2: killed by SIGSEGV (11)", err)

    def test_a_rank_without_memory(self):
        # What a program does whose memory is refused; the kernel's own killer cannot be called here.
        program = "import resource; resource.setrlimit(resource.RLIMIT_AS, (10**8, 10**8)); b'x' * 10**9"
        code, err = self.end_of(self.job_that_goes_on(f'[ $DLRUN_RANK = 6 ] && {{ {GO} exec python3 -c "{program}"; }};'))
        self.assertEqual(code, 1)
        self.assertIn("worker 6 (rank 6) on n4: exit code 1", err)
        self.assertIn("MemoryError", err)

    def test_a_rank_that_the_kernel_ends_for_its_memory(self):
        """A control group with little memory, as schedulers create one per job: the kernel's OOM killer ends the rank."""
        process = self.job(f'[ $DLRUN_RANK = 6 ] && {{ {GO} exec python3 -c "bytearray(512 << 20)"; }};')
        rank = next(pid for pid in self.ranks("n4") if b"DLRUN_RANK=6" in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
        with little_memory(rank):
            self.write("go", "")
            code, err = self.end_of(process)
        self.assertEqual(code, 137)
        self.assertIn("worker 6 (rank 6) on n4: killed by SIGKILL (9): the node ran out of memory, and the kernel killed a process", err)

    def test_a_full_disk_where_a_node_writes_its_logs(self):
        """The run directory of n3 has no room: the others' has."""
        self.cluster.run("head", ["mkdir", f"{self.folder}/run"])
        self.cluster.run("n3", ["mount", "-t", "tmpfs", "-o", "mode=777,size=128k", "tmpfs", f"{self.folder}/run"], user="root")
        self.addCleanup(self.cluster.run, "n3", ["umount", f"{self.folder}/run"], "root")
        self.cluster.run("n3", ["mkdir", "-m", "777", f"{self.folder}/run/logs"], user="root")
        code, err = self.end_of(self.job_that_goes_on(
            f'[ $DLRUN_RANK = 5 ] && {{ {GO} while :; do echo words that fill the disk of the logs, line after line, on n3; done; }};'))
        self.assertEqual(code, 74)
        self.assertIn("worker 5 (rank 5) on n3: ", err)
        self.assertIn("No space left on device", err)
        self.assertEqual(self.record()["attempts"][0]["first_failure"]["host"], "n3")

    def test_a_full_disk_where_the_head_writes_the_record(self):
        self.cluster.run("head", ["mkdir", f"{self.folder}/run"])
        self.cluster.run("head", ["mount", "-t", "tmpfs", "-o", f"uid={UID},mode=700,size=512k", "tmpfs", f"{self.folder}/run"], user="root")
        self.addCleanup(self.cluster.run, "head", ["umount", f"{self.folder}/run"], "root")
        self.cluster.run("n1", ["mkdir", f"{self.folder}/run/logs"])  # what the nodes see
        process = self.job(f'[ $DLRUN_RANK = 2 ] && {{ {GO} exit 7; }};')
        self.cluster.run("head", ["sh", "-c", f"head -c 1M /dev/zero > {self.folder}/run/fill"])
        self.write("go", "")
        code, err = self.end_of(process)
        self.assertEqual(code, 7)  # what the program did is worth more than what could not be written down
        self.assertIn("worker 2 (rank 2) on n2: exit code 7", err)
        self.assertRegex(err, "there is no record of this run: .*No space left on device")

    def test_a_stopped_rank_is_a_hang_of_that_rank(self):
        process = self.job(limit="5s")
        os.kill(self.ranks("n3")[1], signal.SIGSTOP)
        code, err = self.end_of(process)
        self.assertEqual(code, 71)
        self.assertRegex(err, r"worker [45] \(rank [45]\) on n3: hung: .* is stopped, as by SIGSTOP")
        self.assertRegex(err, r"the run hangs: rank [45] stopped, in \w+; 7 ranks ")  # read without root, on four nodes

    def test_an_agent_that_is_killed(self):
        process = self.job()
        os.kill(self.agents("n3")[0], signal.SIGKILL)
        code, err = self.end_of(process)
        self.assertEqual(code, 71)
        self.assertRegex(err, r"n3: (the agent|its ssh connection)")  # whichever end is heard of first

    def test_the_head_is_killed(self):
        process = self.job()
        head = [pid for pid, (_, words) in self.cluster.processes("head").items() if words.startswith(f"{DLRUN} --allocation")]
        os.kill(head[0], signal.SIGKILL)
        self.end_of(process)

    def test_a_node_that_is_cut_off(self):
        process = self.job()
        self.cluster.cut("n4")
        self.addCleanup(self.cluster.mend, "n4")
        code, err = self.end_of(process)
        self.assertEqual(code, 71)
        # Its machine's silence is noticed after 3 s, its agent's after 4.
        self.assertRegex(err, r"n4: (its machine has acknowledged nothing for \S+: the node is cut off or down"
                              r"|nothing heard from it for 4\.0s: the node is cut off, frozen or down)")
        # Its agent ends the ranks by itself, though nobody can tell it to.
        wait_until(lambda: not [words for words in self.cluster.strays().get("n4", []) if not words.startswith("sshd: ")])
        self.cluster.mend("n4")
        self.usable_again()

    def test_a_node_that_is_frozen(self):
        process = self.job()
        self.cluster.freeze("n2")
        self.addCleanup(self.cluster.thaw, "n2")
        code, err = self.end_of(process)
        self.assertEqual(code, 71)
        self.assertIn("n2: nothing heard from it for 4.0s", err)
        self.cluster.thaw("n2")
        self.nothing_left()
        self.usable_again()

    def test_a_node_that_crashes(self):
        process = self.job()
        self.cluster.crash("n3")
        code, err = self.end_of(process)
        self.assertEqual(code, 71)
        self.assertIn("n3: ", err)
        self.cluster.boot("n3")
        self.usable_again()

    def test_a_head_that_was_stopped_for_long_says_so(self):
        process = self.job()
        head = [pid for pid, (_, words) in self.cluster.processes("head").items() if words.startswith(f"{DLRUN} --allocation")][0]
        os.kill(head, signal.SIGSTOP)
        try:
            wait_until(lambda: not [words for host in self.cluster.nodes for words in self.cluster.strays().get(host, []) if "setsid sleep" in words])
        finally:
            os.kill(head, signal.SIGCONT)
            process.send_signal(signal.SIGCONT)  # nsenter, which follows its child
        code, err = self.end_of(process)
        self.assertEqual(code, 71, err)
        self.assertRegex(err, r"error: head: dlrun said nothing for [0-9.]+s, as when it is stopped or suspended, so its agents ended the "
                              r"ranks: they wait 12.0s, three times launch.lost-after")
        self.usable_again()

    def test_ctrl_c(self):
        process = self.job()
        head = [pid for pid, (_, words) in self.cluster.processes("head").items() if words.startswith(f"{DLRUN} --allocation")]
        os.kill(head[0], signal.SIGINT)
        code, err = self.end_of(process)
        self.assertEqual(code, 130)
        self.assertIn("SIGINT", err)


if __name__ == "__main__":
    support.main()
