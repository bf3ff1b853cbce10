#!/usr/bin/env python3
"""MPI ranks that their own launchers start (--mpi native): an agent a rank under srun and under both MPIs' mpiexec, and no
rank that quietly comes up as a world of its own."""
import os
import signal

import support
from support import DLRUN, MPI

HOSTS = "n1,n2,n3,n4"


class MpiEngine(support.Case):
    slurm = True

    def is_a_world(self, code, out, err):
        self.assertEqual(code, 0, err)
        for rank in range(8):
            self.assertIn(f"[worker {rank} n{rank // 2 + 1}] rank {rank} of 8, sum 36, on this node 2\n", out)

    def comes_up_as_a_world(self, words):
        """Debian's MPICH hangs in MPI_Finalize over TCP half of the time, under any launcher: its ranks are ended then."""
        process = self.start(*words)
        out = "".join(process.stdout.readline() for _ in range(8))
        self.is_a_world(0, out, out)
        for pid, (_, line) in self.cluster.processes("head").items():
            if line.startswith(f"{DLRUN} --quiet"):
                os.kill(pid, signal.SIGINT)
        _, err = process.communicate()
        self.assertIn(process.returncode, (0, 130), err)

    IN_JOB = ("salloc", "-Q", "-N4", DLRUN, "--quiet", "--mpi", "native", "--tasks-per-node", "2", "--framework", "mpi", "--")
    BY_MPIEXEC = (DLRUN, "--quiet", "--mpi", "native", "--via", "mpiexec", "--hosts", HOSTS, "--tasks-per-node", "2",
                  "--framework", "mpi", "--")

    def in_job(self, program, env=None):
        return self.run_on(*self.IN_JOB, program, env=env)

    def by_mpiexec(self, program):
        return self.run_on(*self.BY_MPIEXEC, program)

    def test_open_mpi_under_srun(self):
        self.is_a_world(*self.in_job(MPI + "openmpi"))

    def test_mpich_under_srun(self):
        self.comes_up_as_a_world([*self.IN_JOB, MPI + "mpich"])

    def test_open_mpi_under_mpirun(self):
        self.is_a_world(*self.by_mpiexec(MPI + "openmpi"))

    def test_mpich_under_mpiexec(self):
        self.comes_up_as_a_world([*self.BY_MPIEXEC, MPI + "mpich"])

    def test_a_rank_that_fails(self):
        code, _, err = self.in_job(self.write("rank.sh", "#!/bin/sh\n[ $DLRUN_RANK = 5 ] && exit 7\nexec sleep 1000\n"))
        self.assertEqual(code, 7, err)
        self.assertIn("worker 5 (rank 5) on n3: exit code 7", err)

    def test_ranks_that_would_be_alone(self):
        code, out, err = self.in_job(MPI + "mpich", env={"SLURM_MPI_TYPE": "pmix"})
        self.assertEqual((code, out), (69, ""))
        self.assertRegex(err, r"rank \d would come up as 1 of 1, not as one of 8: it links an MPICH, and the launcher speaks PMIx but not PMI")
        code, out, err = self.in_job(MPI + "openmpi", env={"SLURM_MPI_TYPE": "none"})
        self.assertEqual((code, out), (69, ""))
        self.assertRegex(err, r"rank \d would come up as 1 of 1, not as one of 8: the launcher gave it no PMI")

    def test_a_way_that_starts_no_mpi(self):
        code, _, err = self.run_on(DLRUN, "--mpi", "native", "--via", "ssh", "--hosts", HOSTS, "--framework", "mpi", "--", MPI + "openmpi")
        self.assertEqual(code, 64)
        self.assertIn("launch.mpi: native needs a launcher that starts MPI ranks, and launch.via is ssh", err)


if __name__ == "__main__":
    support.main()
