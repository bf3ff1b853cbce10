#!/usr/bin/env python3
"""dlrun submit hands jobs to a real Slurm: they run with the nodes that were asked for, the id comes back alone, and a refusal
names the directive that caused it."""
import json
import pathlib
import re

import support
from cluster import wait_until
from support import DLRUN

JOB = """name: flowers
framework: plain
command: [sh, -c, 'echo "$(hostname)|$DLRUN_RANK|$*"', sh]
resources: {nodes: 3, tasks-per-node: 2, walltime: 5min, queue: main}
"""


class Submit(support.Case):
    slurm = True

    def state_of(self, job):
        return self.run_on("squeue", "-h", "-t", "all", "-o", "%T", "-j", job)[1].strip()

    def wait_for(self, job, state):
        """Until the job is in that state; a job that ends in another one is told at once, with what it printed."""
        ends = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}
        now = wait_until(lambda: (lambda seen: seen if seen == state or seen in ends else None)(self.state_of(job)), 0.2)
        self.assertEqual(now, state, self.printed())

    def printed(self):
        return "".join(path.read_text() for path in pathlib.Path(self.folder).glob("runs/submit-*/*.out"))

    def test_a_job_runs_on_the_nodes_it_asked_for_with_its_words_as_they_were(self):
        self.write("job.yaml", JOB)
        code, out, err = self.run_on(DLRUN, "submit", "job.yaml", "--", "two  words", "a\n#SBATCH --nodes=9", "$HOME'")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"^\d+\n$")
        self.wait_for(out.strip(), "COMPLETED")
        lines = [line for line in self.printed().splitlines() if "|" in line]
        self.assertEqual(sorted(line.split("|")[:2][1] for line in lines), [str(rank) for rank in range(6)], self.printed())
        self.assertEqual(len({line.split("|")[0].split()[-1] for line in lines}), 3)
        self.assertTrue(all(line.endswith("|two  words a") for line in lines), lines)
        self.assertEqual(self.printed().count("#SBATCH --nodes=9 $HOME'"), 6)

    def test_json_and_the_limits_that_slurm_holds(self):
        self.write("job.yaml", JOB.replace("sh, -c", "sleep, '60']\n#"))
        code, out, err = self.run_on(DLRUN, "submit", "--json", "--name", "sleepy", "job.yaml")
        self.assertEqual(code, 0, err)
        answer = json.loads(out)
        self.assertTrue(pathlib.Path(answer["wrapper"]).is_file())
        shown = self.run_on("scontrol", "show", "job", answer["job_id"])[1]
        for text in ("JobName=sleepy", "Partition=main", "TimeLimit=00:05:00", f"WorkDir={self.folder}"):
            self.assertIn(text, shown)
        self.assertRegex(shown, r"NumNodes=3\b")
        self.run_on("scancel", answer["job_id"])
        self.wait_for(answer["job_id"], "CANCELLED")

    def test_the_program_s_exit_code_is_the_job_s(self):
        self.write("job.yaml", JOB)
        code, job, err = self.run_on(DLRUN, "submit", "--framework", "plain", "--name", "bad", "--", "sh", "-c", "exit 7")
        self.assertEqual(code, 0, err)
        self.wait_for(job.strip(), "FAILED")
        self.assertIn("ExitCode=7:0", self.run_on("scontrol", "show", "job", job.strip())[1])

    def test_flags_reach_the_job_and_an_edit_of_the_job_file_does_not(self):
        self.write("job.yaml", JOB.replace("sh, -c, 'echo", "sh, -c, 'echo first; sleep 1000; echo").replace("nodes: 3", "nodes: 1"))
        code, out, err = self.run_on(DLRUN, "submit", "--no-output-limit", "3s", "--set", "resources.extra=[--begin=now+3]", "job.yaml")
        self.assertEqual(code, 0, err)
        self.write("job.yaml", JOB.replace("echo", "echo SECOND"))
        self.wait_for(out.strip(), "FAILED")
        self.assertIn("ExitCode=71:0", self.run_on("scontrol", "show", "job", out.strip())[1])
        self.assertIn("first", self.printed())
        self.assertNotIn("SECOND", self.printed())

    def test_slurm_is_told_of_memory_whole_nodes_and_mail(self):
        self.write("job.yaml", JOB.replace("queue: main", "queue: main, memory: 512MiB, exclusive: true, mail: ann@example.org"))
        code, out, err = self.run_on(DLRUN, "submit", "--set", "resources.extra=[--hold, --time=3]", "job.yaml")
        self.assertEqual(code, 0, err)
        shown = self.run_on("scontrol", "show", "job", out.strip())[1]
        for text in ("MinMemoryNode=512M", "OverSubscribe=NO", "MailUser=ann@example.org", "MailType=END,FAIL", "TimeLimit=00:03:00"):
            self.assertIn(text, shown)
        self.run_on("scancel", out.strip())

    def test_refusals_name_the_directive_and_leave_nothing_behind(self):
        self.write("job.yaml", JOB)
        for flags, directive, key in (
                (["--set", "resources.queue=nosuch"], "#SBATCH --partition=nosuch", "resources.queue"),
                (["--set", "resources.extra=[--frobnicate=1]"], "#SBATCH --frobnicate=1", "resources.extra")):
            code, out, err = self.run_on(DLRUN, "submit", *flags, "job.yaml")
            self.assertEqual((code, out), (69, ""), err)
            self.assertIn(f"directive: {directive}\n  hint: it comes from {key}", err)
        self.assertFalse(list(pathlib.Path(self.folder).glob("runs/*")))

    def test_what_slurm_would_take_and_never_run_is_refused(self):
        self.write("job.yaml", JOB)
        for flags, why in ((["--nodes", "5"], "partition main has 4 nodes and the job requests 5"),
                           (["--set", "resources.queue=short"], "partition short ends jobs after 0:02:00 and the job requests 0:05:00")):
            code, out, err = self.run_on(DLRUN, "submit", *flags, "job.yaml")
            self.assertEqual((code, out), (66, ""), err)
            self.assertIn(why + ": the job would wait forever", err)

    def test_slurm_s_own_qsub_takes_the_script_for_torque(self):
        """Debian's slurm-wlm-torque: a qsub that is made of sbatch. It names the output itself, and gives no node its share of tasks."""
        self.write("job.yaml", JOB)
        code, out, err = self.run_on(DLRUN, "submit", "--scheduler", "torque", "--nodes", "2", "job.yaml")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"^\d+\n$")
        self.wait_for(out.strip(), "COMPLETED")
        shown = self.run_on("scontrol", "show", "job", out.strip())[1]
        for text in ("JobName=flowers", "Partition=main", "TimeLimit=00:05:00", "NumNodes=2", "NumTasks=4"):
            self.assertIn(text, shown)
        lines = [line for line in self.read(f"job.sh.o{out.strip()}").splitlines() if "|" in line]
        self.assertEqual(sorted(line.split("|")[1] for line in lines), ["0", "1", "2", "3"], lines)
        self.assertIn("job_state = C", self.run_on("qstat", "-f", out.strip())[1])

    def test_a_chain_by_that_qsub_ends_with_the_reason(self):
        """Its jobs are not told their id as Torque's are; Slurm's own sbatch makes chains here."""
        self.write("job.yaml", JOB)
        code, out, err = self.run_on(DLRUN, "submit", "--scheduler", "torque", "--chain", "3", "--nodes", "1", "job.yaml")
        self.assertEqual(code, 0, err)
        self.wait_for(out.strip(), "FAILED")
        self.assertIn("PBS_JOBID is not set: this is not a job of torque", self.read(f"job.sh.e{out.strip()}"))

    def test_a_job_may_submit_another(self):
        self.write("job.yaml", JOB)
        code, out, err = self.run_on("salloc", "-Q", "-N1", "--mem-per-cpu=50", "--time=1", DLRUN, "submit", "job.yaml")
        self.assertEqual(code, 0, err)
        job = re.search(r"^\d+$", out, re.M).group()
        self.wait_for(job, "COMPLETED")
        self.assertIn("TimeLimit=00:05:00", self.run_on("scontrol", "show", "job", job)[1])


if __name__ == "__main__":
    support.main()
