#!/usr/bin/env python3
"""--stage: nodes that do not have dlrun get a copy for the time of the job, over ssh and in a Slurm job alike, and nothing of it
is left, however the job ends."""
import contextlib
import os
import pathlib
import signal

import support
from cluster import wait_until
from support import DLRUN, MPI

MISSING = ("n2", "n4")
TRAINING = """\
framework: builtin
resources: {nodes: 2, tasks-per-node: 1, cpus-per-task: 1}
train:
  model: mnist-cnn
  data: {format: synthetic, samples: 320}
  batch: 16
  epochs: 1
"""


class Stage(support.Case):
    slurm = True
    launchers = {"ssh": ("--via", "ssh", "--hosts", "n1,n2,n3,n4"), "slurm": ("--via", "slurm")}

    def words(self, launcher, *words, run=None):
        allocation = ("salloc", "-Q", "-N4") if launcher == "slurm" else ()
        return (*allocation, DLRUN, *self.launchers[launcher], "--run-dir", run or launcher, *words)

    def tearDown(self):
        super().tearDown()
        wait_until(lambda: not any(self.copies(host) for host in ("n1", *MISSING)))
        for launcher in self.launchers:
            self.assertEqual([path.name for path in pathlib.Path(f"{self.folder}/{launcher}").glob("dlrun-copy*")], [])

    def staged_agents(self, host):
        """Their pids, by their command lines: reapers and agents."""
        return [pid for pid, (_, words) in self.cluster.processes(host).items() if words.startswith("/tmp/dlrun-") and "/dlrun-agent --hold " in words]

    def test_nodes_without_dlrun_run_their_ranks(self):
        for launcher in self.launchers:
            with self.subTest(launcher), self.without_dlrun(*MISSING):
                code, out, err = self.run_on(*self.words(launcher, "--stage", "--tasks-per-node", "2", "--framework", "plain", "--", "sh", "-c",
                                                         "echo $(hostname) $DLRUN_RANK"))
                self.assertEqual(code, 0, err)
                self.assertEqual(sorted(out.splitlines()), [f"[worker {r} n{r // 2 + 1}] n{r // 2 + 1} {r}" for r in range(8)])

    def test_the_copies_have_their_plug_ins(self):
        for launcher in self.launchers:
            with self.subTest(launcher), self.without_dlrun(*MISSING):
                code, out, err = self.run_on(*self.words(launcher, "--stage", "--framework", "mpi", "--", MPI + "openmpi"))
                self.assertEqual(code, 0, err)
                for rank in range(4):
                    self.assertIn(f"rank {rank} of 4, sum 10, on this node 1\n", out)

    def test_the_built_in_runtime_is_copied_with_its_plug_ins(self):
        self.write("job.yaml", TRAINING)
        for launcher in self.launchers:
            with self.subTest(launcher), self.without_dlrun(*MISSING):
                code, _, err = self.run_on(*self.words(launcher, "--stage", "job.yaml"))
                self.assertEqual(code, 0, err)
                self.assertEqual(self.record(launcher)["result"]["steps"], 10)
                self.assertEqual([rank["host"] for rank in self.record(launcher)["attempts"][-1]["ranks"]], ["n1", "n2"])

    def test_without_the_flag_the_node_is_named_with_the_hint(self):
        for launcher in self.launchers:
            with self.subTest(launcher), self.without_dlrun(*MISSING):
                code, _, err = self.run_on(*self.words(launcher, "--framework", "plain", "--", "true"))
                self.assertEqual(code, 69, err)
                self.assertIn("n2", err)
                self.assertIn("--stage", err)

    def test_a_node_that_can_hold_no_copy_is_named_with_the_reason(self):
        for launcher in self.launchers:
            self.cluster.run("n4", ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/tmp"], user="root")
            try:
                with self.subTest(launcher), self.without_dlrun(*MISSING):
                    code, _, err = self.run_on(*self.words(launcher, "--stage", "--framework", "plain", "--", "true"))
                    self.assertEqual(code, 69, err)
                    self.assertRegex(err, r"1 of 4 nodes cannot be reached by (ssh|slurm): n4\n")
                    self.assertRegex(err, r"\| tar: bin/dlrun-agent: (Wrote only|Cannot write: No space)")
                    self.assertIn("TMPDIR", err)
                    self.assertEqual(self.copies("n4"), [])
            finally:
                self.cluster.run("n4", ["umount", "/tmp"], user="root")

    def running(self, launcher):
        process = self.start(*self.words(launcher, "--stage", "--set", "launch.grace=1s", "--framework", "plain", "--", "sh", "-c", "echo on; exec sleep 1000"))
        for _ in range(4):
            line = process.stdout.readline()
            if not line:
                self.fail("it ended too early: " + process.stderr.read())
        for host in MISSING:
            self.assertTrue(self.staged_agents(host))
        return process

    def next_job_cleans_up(self, launcher):
        """Slurm kills all of a step whose srun is killed or told to end, with nobody left to clean up: the next agent does."""
        code, _, err = self.run_on(*self.words(launcher, "--framework", "plain", "--", "true", run="next-" + launcher))
        self.assertEqual(code, 0, err)

    def test_nothing_is_left_after_agents_were_killed(self):
        for launcher in self.launchers:
            with self.subTest(launcher), self.without_dlrun(*MISSING):
                process = self.running(launcher)
                for pid in self.staged_agents("n2"):
                    with contextlib.suppress(ProcessLookupError):  # one does not outlive the other for long
                        os.kill(pid, signal.SIGKILL)
                _, err = process.communicate()
                self.assertEqual(process.returncode, 71, err)
                self.assertIn("n2", err)
                self.nothing_left()
            self.next_job_cleans_up(launcher)

    def test_nothing_is_left_after_the_head_was_killed(self):
        for launcher in self.launchers:
            with self.subTest(launcher):
                with self.without_dlrun(*MISSING):
                    process = self.running(launcher)
                    for pid, (_, words) in self.cluster.processes("head").items():
                        if words.startswith(DLRUN):
                            os.kill(pid, signal.SIGKILL)
                    process.communicate()
                    self.nothing_left()
                self.next_job_cleans_up(launcher)
                for path in pathlib.Path(f"{self.folder}/{launcher}").glob("dlrun-copy*"):
                    path.unlink()  # of the head that was killed


if __name__ == "__main__":
    support.main()
