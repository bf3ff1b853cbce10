#!/usr/bin/env python3
"""MPI programs get a real world without mpirun: Open MPI and MPICH from the same command line; and how such jobs fail."""
import os
import subprocess

import support

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size, one = 1, sum = 0;
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "never")) return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d, sum %d\n", rank, size, sum);
    fflush(stdout);
    if (!strcmp(what, "abort") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(what, "die") && rank == 1) raise(9);
    if (!strcmp(what, "exit") && rank == 1) exit(3);
    if (!strcmp(what, "leave") && rank == 1) _exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""


class Mpi(support.Case):
    FLAVOURS = {"openmpi": "pmix", "mpich": "pmi1"}

    @classmethod
    def setUpClass(cls):
        cls.programs = os.path.join(os.environ["E2E_SCRATCH"], "programs")
        os.makedirs(cls.programs, exist_ok=True)
        source = os.path.join(cls.programs, "program.c")
        with open(source, "w") as file:
            file.write("#include <signal.h>\n" + PROGRAM)
        for flavour in cls.FLAVOURS:
            subprocess.run([f"mpicc.{flavour}", "-O1", "-o", os.path.join(cls.programs, flavour), source], check=True)

    def mpi(self, flavour, *words, ranks=3, flags=()):
        return self.dlrun(*flags, "--framework", "mpi", "--tasks-per-node", str(ranks), "--run-dir", f"run-{flavour}-{'-'.join(words)}-{ranks}",
                          "--", os.path.join(self.programs, flavour), *words)

    def test_a_real_world_of_each_flavour(self):
        for flavour, protocol in self.FLAVOURS.items():
            for ranks in (1, 2, 5):
                code, out, err = self.mpi(flavour, ranks=ranks)
                self.assertEqual(code, 0, err)
                self.assertEqual(sorted(out.splitlines()), [f"[worker {r}] rank {r} of {ranks}, sum {ranks}" for r in range(ranks)])

    def test_a_plain_job_of_an_mpi_program_is_one_world_and_of_another_program_none(self):
        for flavour, protocol in self.FLAVOURS.items():
            with self.subTest(flavour):
                code, out, err = self.dlrun("--quiet", "--tasks-per-node", "2", "--run-dir", flavour, "--", os.path.join(self.programs, flavour))
                self.assertEqual(code, 0, err)
                self.assertIn("rank 1 of 2, sum 2\n", out)
                self.assertIn(f'"mpi": "{protocol}"', self.read(f"{flavour}/plan.json"))
        code, out, err = self.dlrun("--quiet", "--tasks-per-node", "2", "--run-dir", "none", "--", "sh", "-c", "echo ${PMIX_RANK-none}")
        self.assertEqual(code, 0, err)
        self.assertIn('"mpi": "none"', self.read("none/plan.json"))

    def test_mpi_abort_names_the_rank_and_keeps_its_code(self):
        for flavour, _ in self.FLAVOURS.items():
            code, _, err = self.mpi(flavour, "abort")
            self.assertEqual(code, 7, err)
            self.assertIn("worker 1 (rank 1)", err)
            self.assertIn("MPI_Abort", err)

    def test_a_rank_that_dies_ends_the_job(self):
        for flavour, _ in self.FLAVOURS.items():
            code, _, err = self.mpi(flavour, "die")
            self.assertEqual(code, 137, err)
            self.assertIn("worker 1 (rank 1)", err)
            self.assertIn("killed by SIGKILL", err)

    def test_a_rank_that_exits_early_ends_the_job(self):
        for flavour, _ in self.FLAVOURS.items():
            self.assertEqual(self.mpi(flavour, "exit")[0], 3)

    def test_a_rank_that_exits_without_finalize_is_the_first_failure(self):
        for flavour, _ in self.FLAVOURS.items():
            code, _, err = self.mpi(flavour, "leave")
            self.assertEqual(code, 71, err)
            self.assertIn("worker 1 (rank 1)", err)
            self.assertIn("without MPI_Finalize", err)

    def test_silent_singletons_are_caught(self):
        for flavour, protocol in self.FLAVOURS.items():
            code, _, err = self.mpi(flavour, "never")
            self.assertEqual(code, 69, err)
            self.assertIn("without joining the MPI world", err)
        # The wrong protocol for the program: each rank would be alone.
        code, _, err = self.mpi("mpich", flags=("--mpi", "pmix"))
        self.assertNotEqual(code, 0)

    def test_an_outer_launchers_variables_do_not_lead_ranks_astray(self):
        self.environment.update(PMI_RANK="0", PMI_SIZE="1", PMI_FD="77", PMIX_NAMESPACE="other", PMIX_RANK="0", OMPI_COMM_WORLD_SIZE="1")
        for flavour, _ in self.FLAVOURS.items():
            code, out, err = self.mpi(flavour, ranks=2)
            self.assertEqual(code, 0, err)
            self.assertIn("rank 1 of 2, sum 2", out)

    def test_nothing_stays_in_shared_memory(self):
        before = set(os.listdir("/dev/shm"))
        for flavour, _ in self.FLAVOURS.items():
            for how in ("abort", "die"):
                self.mpi(flavour, how)
        self.assertEqual(set(os.listdir("/dev/shm")) - before, set())


if __name__ == "__main__":
    support.main()
