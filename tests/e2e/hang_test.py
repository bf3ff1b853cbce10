#!/usr/bin/env python3
"""A job that stands still is ended, and the verdict names the rank that holds it up, not those that wait for it."""
import os
import signal
import subprocess

import support
from support import wait_until

# MPI_Finalize deletes the attributes of MPI_COMM_SELF first: a rank that stays there is inside MPI_Finalize.
FINALIZE = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int stay(MPI_Comm comm, int key, void *value, void *extra) { pause(); return 0; }
int main(int argc, char **argv) {
    int rank, key;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("working\n"); fflush(stdout);
    if (!strcmp(argv[1], "late") && rank == 1) sleep(8);
    if (!strcmp(argv[1], "hang") && rank == 1) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, stay, &key, 0);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, 0);
    }
    MPI_Finalize();
    return 0;
}
"""
STEPS = r"""
import json, os, socket, sys, time
rank = int(os.environ["DLRUN_RANK"])
control = socket.socket(socket.AF_UNIX)
control.connect(os.environ["DLRUN_CONTROL"])
for step in range(1, 1000):
    control.sendall((json.dumps({"rank": rank, "step": step}) + "\n").encode())
    time.sleep(0.1)
    if rank == 2 and step == 5:
        time.sleep(1000)
"""
# A bar as tqdm draws it, until it is told to end.
BAR = r"""
import os, sys, time
i = 0
while not os.path.exists("go"):
    i += 1
    sys.stderr.write(f"\r step {i} |####  |")
    sys.stderr.flush()
    time.sleep(0.1)
print("\r all 100%", file=sys.stderr)
"""


class Hang(support.Case):
    def test_a_progress_bar_without_line_ends_is_output(self):
        """Any byte counts, and the log has it within a second."""
        self.write("bar.py", BAR)
        process = self.start("--framework", "plain", "--run-dir", "run", "--no-output-limit", "5s", "--", "python3", "bar.py")
        log = "run/logs/0000-worker-0.log"
        wait_until(lambda: process.poll() is not None or self.exists(log) and "step 80 " in self.read(log), "the log grows")
        self.write("go", "")
        _, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("\r step 1 |####  |\r step 2 |", self.read(log).replace("\n", "\r"))  # text mode reads \r as \n
        self.assertRegex(err, r"\[worker 0\]  all 100%\n")  # of all that was drawn, a pipe gets what remains
        self.assertNotIn("step 1 ", err)

    def test_a_prompt_is_in_the_verdict_of_a_hang(self):
        code, _, err = self.plain("printf 'Go on? [y/n] '; sleep 1000", "--no-output-limit", "1s")
        self.assertEqual(code, 71)
        self.assertIn("  | Go on? [y/n] \n", err)

    def test_a_job_that_prints_nothing(self):
        code, _, err = self.plain("echo hello; sleep 1000", "--tasks-per-node", "2", "--no-output-limit", "1s")
        self.assertEqual(code, 71)
        self.assertRegex(err, r"worker [01] \(rank [01]\) on \S+: hung: no rank printed anything for 1\.0s \(launch\.no-output-limit\)")
        event = [event for event in self.events() if event["event"] == "hang"]
        self.assertEqual(len(event), 1)

    def test_one_rank_that_prints_is_enough(self):
        code, _, err = self.plain('[ $DLRUN_RANK = 0 ] && for i in {1..35}; do echo $i; sleep 0.2; done; sleep 0.2',
                                  "--tasks-per-node", "2", "--no-output-limit", "5s")
        self.assertEqual(code, 0, err)

    def test_a_stopped_rank_is_named_and_not_those_that_wait(self):
        process = self.start("--framework", "plain", "--run-dir", "run", "--tasks-per-node", "3", "--no-output-limit", "4s",
                             "--set", "launch.grace=1s", "--", "bash", "-c",
                             'echo $$ >pid.$DLRUN_RANK.new; mv pid.$DLRUN_RANK.new pid.$DLRUN_RANK; echo here; sleep 1000')
        wait_until(lambda: self.exists("pid.1"), "rank 1 runs")
        pid = int(self.read("pid.1"))
        os.kill(pid, signal.SIGSTOP)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 71)
        self.assertIn("worker 1 (rank 1) on ", err)
        self.assertRegex(err, rf"its process {pid} \((bash|sleep)\) is stopped, as by SIGSTOP")

    def test_a_rank_that_makes_no_progress_while_the_others_do(self):
        self.write("steps.py", STEPS)
        code, _, err = self.dlrun("--framework", "plain", "--run-dir", "run", "--tasks-per-node", "3", "--no-progress-limit", "2s", "--",
                                  "python3", "steps.py")
        self.assertEqual(code, 71)
        self.assertIn("worker 2 (rank 2) on ", err)
        self.assertRegex(err, r"no progress for \S+ \(launch\.no-progress-limit\), its last step was 5")

    def test_a_limit_of_a_moving_job_is_no_limit_on_its_length(self):
        self.write("steps.py", STEPS.replace("1000)", "70)", 1).replace("rank == 2 and", "False and"))
        code, _, err = self.dlrun("--framework", "plain", "--run-dir", "run", "--tasks-per-node", "3", "--no-progress-limit", "5s", "--",
                                  "python3", "steps.py")
        self.assertEqual(code, 0, err)


class Finalize(support.Case):
    @classmethod
    def setUpClass(cls):
        cls.program = os.path.join(os.environ["E2E_SCRATCH"], "finalize")
        os.makedirs(os.path.dirname(cls.program), exist_ok=True)
        subprocess.run(["mpicc.mpich", "-x", "c", "-o", cls.program, "-"], input=FINALIZE, text=True, check=True)

    def mpi(self, what):
        return self.dlrun("--framework", "mpi", "--run-dir", "run", "--tasks-per-node", "3", "--set", "launch.finalize-limit=3s", "--",
                          self.program, what)

    def test_a_rank_that_stays_in_finalize(self):
        code, _, err = self.mpi("hang")
        self.assertEqual(code, 71)
        self.assertIn("worker 1 (rank 1) on ", err)
        self.assertIn("hung inside MPI_Finalize", err)

    def test_a_rank_that_still_works_is_waited_for(self):
        code, _, err = self.mpi("late")
        self.assertEqual(code, 0, err)


if __name__ == "__main__":
    support.main()
