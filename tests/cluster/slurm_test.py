#!/usr/bin/env python3
"""Inside a Slurm job of several nodes: dlrun reads the allocation, gets an agent onto each node by one srun step, and the
ranks of any kind run there."""
import os
import pathlib
import re
import shlex

import support
from cluster import wait_until
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

    def test_a_plain_job_of_an_mpi_program_is_one_world(self):
        code, out, err = self.salloc(DLRUN, "--quiet", "--tasks-per-node", "2", "--", MPI + "openmpi", nodes=2)
        self.assertEqual(code, 0, err)
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4, sum 10, on this node 2\n", out)

    def test_several_copies_refuse_and_a_single_task_runs(self):
        code, out, err = self.salloc("srun", "-n2", DLRUN, "--framework", "plain", "--", "echo", "ran", nodes=2)
        self.assertEqual((code, out), (64, ""), err)
        for task in range(2):
            self.assertIn(f"this dlrun is task {task} of 2 that srun started, and each of them would start the whole job", err)
        code, out, err = self.salloc("srun", "-N1", "-n1", "--overlap", DLRUN, "--quiet", "--nodes", "1", "--framework", "plain", "--",
                                     "sh", "-c", "echo $SLURM_PROCID of $SLURM_NTASKS", nodes=2)
        self.assertEqual((code, out), (0, "[worker 0] 0 of 1\n"), err)

    def test_all_groups_of_a_heterogeneous_job(self):
        code, out, err = self.run_on("salloc", "-Q", "-N1", ":", "-N2", "--ntasks-per-node=2", DLRUN, "--quiet",
                                     "--tasks-per-node", "1", "--framework", "plain", "--", "hostname")
        self.assertEqual(code, 0, err)
        hosts = [line.split()[-1] for line in out.splitlines()]
        self.assertEqual((len(hosts), len(set(hosts))), (3, 3), out)

    def test_a_run_directory_that_the_nodes_do_not_see(self):
        for launcher, expected in (("slurm", 74), ("mpiexec", 69)):
            code, out, err = self.run_on("salloc", "-Q", "-N2", DLRUN, "--via", launcher, "--run-dir", f"/tmp/of-the-head-{launcher}", "--framework", "plain",
                                         "--", "true")
            self.assertEqual((code, out), (expected, ""), err)
            self.assertIn("hint: every node must see the run directory: name one that they share, with --run-dir", err)

    def cancelled(self, run, rank, *flags, nodes=2):
        """(job, record, what was printed) of a batch job that `scancel` ended with these flags."""
        script = self.write(f"{run}.sh", f"#!/bin/bash\nexec {IN_SHELL} --run-dir {run} --framework plain -- bash -c {shlex.quote(rank)}\n")
        code, job, err = self.run_on("sbatch", "--parsable", f"-N{nodes}", "--output", f"{run}.out", script)
        self.assertEqual(code, 0, err)
        job = job.strip()
        wait_until(lambda: all(os.path.exists(f"{self.folder}/up-{run}-{rank}") for rank in range(nodes)))
        self.run_on("scancel", *flags, job)
        wait_until(lambda: os.path.exists(f"{self.folder}/{run}/record.json"), 0.1)
        return job, self.record(run), self.read(f"{run}.out")

    def test_a_cancelled_job_is_cancelled_and_no_node_has_failed(self):
        for run, nodes, flags in (("two", 2, ()), ("one", 1, ()), ("full", 2, ("--full", "-s", "TERM"))):
            with self.subTest(run):
                job, record, out = self.cancelled(run, f"touch up-{run}-$DLRUN_RANK; exec sleep 1000", *flags, nodes=nodes)
                attempt = record["attempts"][0]
                self.assertEqual((record["exit_code"], record["reason"], attempt["first_failure"]),
                                 (143, f"cancelled (SIGTERM from Slurm, job {job})", None), out)
                self.assertNotRegex(out, "dlrun: (srun|slurmstepd)")  # Slurm's own line of the batch script is not ours
                self.nothing_left()

    def test_a_cancelled_job_whose_ranks_save_is_to_be_run_again(self):
        saves = 'trap "touch saved-$DLRUN_RANK; exit 75" TERM; touch up-saves-$DLRUN_RANK; while :; do sleep 0.05; done'
        job, record, out = self.cancelled("saves", saves)
        self.assertEqual(record["exit_code"], 75, out)
        self.assertIn(f"cancelled (SIGTERM from Slurm, job {job}) with a valid checkpoint: run the same command again", record["reason"])

    def test_ranks_are_in_slurms_accounting_and_stand_still_while_the_job_is_suspended(self):
        process = self.start("salloc", "-Q", "-N2", DLRUN, "--run-dir", "run", "--framework", "plain", "--", "bash", "-c",
                             "echo $SLURM_JOB_ID; until [ -e go ]; do sleep 0.05; done")
        job = process.stdout.readline().split()[-1]
        process.stdout.readline()
        rank = min(pid for pid, (_, words) in self.cluster.processes("n1").items() if words.startswith("bash -c echo"))
        listed = self.cluster.run("n1", ["scontrol", "listpids", job], user="root").stdout.splitlines()[1:]
        self.assertIn(self.status(rank, "NSpid")[-1], [line.split()[0] for line in listed if line.strip()])
        self.assertEqual(self.cluster.run("head", ["scontrol", "suspend", job], user="root").returncode, 0)
        wait_until(lambda: self.status(rank, "State")[0] == "T")
        self.write("go", "")
        self.assertEqual(self.cluster.run("head", ["scontrol", "resume", job], user="root").returncode, 0)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)

    @staticmethod
    def status(pid, name):
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(line.split()[1:] for line in lines if line.startswith(name + ":"))

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
