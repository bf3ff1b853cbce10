#!/usr/bin/env python3
"""Inside a Slurm job of several nodes: dlrun reads the allocation, gets an agent onto each node by one srun step, and the
ranks of any kind run there."""
import re

import support
from support import DLRUN, IN_SHELL, MPI


class Slurm(support.Case):
    slurm = True

    def salloc(self, *words, nodes=4, flags=()):
        return self.run_on("salloc", "-Q", f"-N{nodes}", *flags, *words)

    def test_ranks_run_on_every_node(self):
        code, out, err = self.salloc(DLRUN, "--run-dir", "run", "--tasks-per-node", "2",
                                     "--framework", "plain", "--", "sh", "-c", "echo $(hostname) $DLRUN_RANK")
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"[worker {r} n{r // 2 + 1}] n{r // 2 + 1} {r}" for r in range(8)])

    def test_an_open_mpi_world_over_all_nodes(self):
        code, out, err = self.salloc(DLRUN, "--tasks-per-node", "2", "--framework", "mpi", "--",
                                     MPI + "openmpi")
        self.assertEqual(code, 0, err)
        for rank in range(8):
            self.assertIn(f"rank {rank} of 8, sum 36, on this node 2\n", out)

    def test_all_groups_of_a_heterogeneous_job(self):
        code, out, err = self.run_on("salloc", "-Q", "-N1", ":", "-N2", "--ntasks-per-node=2", DLRUN, "--quiet",
                                     "--tasks-per-node", "1", "--framework", "plain", "--", "hostname")
        self.assertEqual(code, 0, err)
        hosts = [line.split()[-1] for line in out.splitlines()]
        self.assertEqual((len(hosts), len(set(hosts))), (3, 3), out)

    def test_a_run_directory_that_the_nodes_do_not_see(self):
        for way, expected in (("slurm", 74), ("mpiexec", 69)):
            code, out, err = self.run_on("salloc", "-Q", "-N2", DLRUN, "--via", way, "--run-dir", f"/tmp/of-the-head-{way}", "--framework", "plain",
                                         "--", "true")
            self.assertEqual((code, out), (expected, ""), err)
            self.assertIn("hint: every node must see the run directory: name one that they share, with --run-dir", err)

    def test_variables_of_a_job_that_is_over_are_no_allocation(self):
        code, out, _ = self.salloc("sh", "-c", "env | grep ^SLURM_", nodes=2)
        left = [line for line in out.splitlines() if line.startswith("SLURM_")]
        self.assertTrue(left)
        code, _, err = self.run_on("env", *left, DLRUN, "--framework", "plain", "--", "hostname")
        self.assertEqual(code, 66)
        self.assertRegex(err, r"the Slurm variables of this shell are left over: job \d+ is over \(COMPLETED\)")

    def test_the_end_of_the_job_is_known_without_slurms_programs_too(self):
        script = self.write("ends.sh", f"#!/bin/sh\n{IN_SHELL} allocation --json\nPATH=/nowhere {IN_SHELL} allocation --json\n")
        code, out, err = self.salloc("-t", "5", script, nodes=1)
        self.assertEqual(code, 0, err)
        ends = re.findall(r'"end_time": "(.*)"', out)
        self.assertEqual(len(ends), 2, out)
        self.assertEqual(ends[0], ends[1])
        self.assertIn("libslurm: end", out)

    def test_the_jobs_environment_counts_on_every_node_whatever_its_bytes(self):
        script = self.write("rank.sh", '#!/bin/bash\nprintf "%s|%s|%s\\n" "$SLURMD_NODENAME" "$(od -An -tx1 <<<"$ODD" | tr -d " \\n")" "${SLURM_PROCID-none}"\n')
        self.write("job.sh", f"#!/bin/bash\nexport ODD=$'\\xff\\n x'\nexec {IN_SHELL} --quiet --framework plain -- {script}\n")
        code, out, err = self.salloc("./job.sh")
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"[worker {i} n{i + 1}] n{i + 1}|ff0a20780a|{i}" for i in range(4)])


if __name__ == "__main__":
    support.main()
