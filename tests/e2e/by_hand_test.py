#!/usr/bin/env python3
"""The node script, run by hand with bash, does the job without dlrun: the same ranks, the same training, the same bits."""
import glob
import os
import shutil
import signal
import subprocess

import support
import training_test
from support import wait_until


class ByHand(support.Case):
    def script(self, run="run"):
        (path,) = glob.glob(os.path.join(self.folder, run, "nodes", "0001-*.sh"))
        return path

    def bash(self, script, **options):
        """(exit code, stdout, stderr)"""
        done = subprocess.run(["bash", script], env=self.environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              **options)
        return done.returncode, done.stdout, done.stderr

    def weights(self):
        # Of the newest checkpoint: on a busy machine an earlier one may still be being written when the next is due.
        content = b""
        newest = max(glob.glob(os.path.join(self.folder, "ckpt", "step-*")))
        for path in sorted(glob.glob(newest + "/*.safetensors")):
            with open(path, "rb") as file:
                content += file.read()
        self.assertGreater(len(content), 1000000)
        return content

    def test_it_trains_to_the_same_bits_under_either_mpi(self):
        training_test.make_data(os.path.join(self.folder, "data"))
        job = self.write("job.yaml", training_test.JOB.format(ranks=2, epochs=1))
        for mpi in ("pmix", "pmi1"):
            with self.subTest(mpi):
                code, _, err = self.dlrun("--mpi", mpi, "--run-dir", mpi, job)
                self.assertEqual(code, 0, err)
                first = self.weights()
                shutil.rmtree(os.path.join(self.folder, "ckpt"))
                code, out, err = self.bash(self.script(mpi))
                self.assertEqual(code, 0, err)
                self.assertIn("test accuracy", out)
                self.assertEqual(self.weights(), first)
                shutil.rmtree(os.path.join(self.folder, "ckpt"))

    def test_scripts_of_a_plan_are_enough(self):
        """dlrun plan makes no run directory; the script writes the files that its ranks read."""
        training_test.make_data(os.path.join(self.folder, "data"))
        job = self.write("job.yaml", training_test.JOB.format(ranks=1, epochs=1))
        code, _, err = self.dlrun("plan", "--scripts", "scripts/nodes", "--run-dir", "later", job)
        self.assertEqual(code, 0, err)
        self.assertFalse(self.exists("later"))
        code, out, err = self.bash(self.script("scripts"))
        self.assertEqual(code, 0, err)
        self.assertIn("test accuracy", out)

    def test_ranks_of_a_plain_job_and_the_code_of_the_first_that_fails(self):
        code, _, err = self.plain("echo rank $DLRUN_RANK of $DLRUN_SIZE in $PWD", "--tasks-per-node", "3")
        self.assertEqual(code, 0, err)
        code, out, err = self.bash(self.script())
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()), [f"rank {r} of 3 in {self.folder}" for r in range(3)])
        shutil.rmtree(os.path.join(self.folder, "run"))
        self.plain("if ((DLRUN_RANK == 1)); then exit 9; fi; sleep 1000", "--tasks-per-node", "3")
        code, _, err = self.bash(self.script())
        self.assertEqual(code, 9)
        self.assertIn("rank 1 ended with exit code 9", err)

    def test_a_signal_ends_all_ranks_and_their_children(self):
        self.dlrun("plan", "--scripts", "scripts/nodes", "--run-dir", "later", "--tasks-per-node", "2", "--framework", "plain", "--",
                   "bash", "-c", "sleep 1000 & touch started-$DLRUN_RANK; wait")
        for number in (signal.SIGTERM, signal.SIGHUP):
            process = subprocess.Popen(["bash", self.script("scripts")], env=self.environment, stdin=subprocess.DEVNULL)
            wait_until(lambda: self.exists("started-0") and self.exists("started-1"), "both ranks started")
            process.send_signal(number)
            self.assertEqual(process.wait(), 128 + number)
            self.none_left()
            os.remove(os.path.join(self.folder, "started-0"))
            os.remove(os.path.join(self.folder, "started-1"))


if __name__ == "__main__":
    support.main()
