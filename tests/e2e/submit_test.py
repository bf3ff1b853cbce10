#!/usr/bin/env python3
"""`dlrun submit` to PBS, by programs on PATH that answer as a real OpenPBS does: it takes jobs that it will never run, and says so
only later. And to a Slurm that takes every job: what was submitted is what runs."""
import glob
import json
import os
import re
import stat
import subprocess

import support

ANSWERS = {
    "qsub": 'if [ "$1" = --version ]; then echo "pbs_version = 23.06.06"; else echo 7.srv; fi',
    "qstat": r"""printf 'Job Id: 7.srv\n    job_state = Q\n    comment = %s\n    etime = now\n' "$COMMENT" """,
    "qdel": 'echo "$*" >>"$DELETED"',
}


class SubmitToPbs(support.Case):
    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "bin"))
        for name, script in ANSWERS.items():
            os.chmod(self.write(f"bin/{name}", f"#!/bin/sh\n{script}\n"), 0o755)
        self.environment["PATH"] = os.path.join(self.folder, "bin") + ":/usr/bin:/bin"
        self.environment["DELETED"] = os.path.join(self.folder, "deleted")

    def submit(self, comment, *flags):
        self.environment["COMMENT"] = comment
        return self.dlrun("submit", "--scheduler", "pbs", "--nodes", "6", *flags, "--framework", "plain", "--name", "big", "--", "true")

    def test_a_job_that_can_never_run_is_cancelled_and_leaves_nothing_behind(self):
        for flags in ([], ["--chain", "3"]):
            code, out, err = self.submit("Can Never Run: Not enough total nodes av\n\tailable", *flags)
            self.assertEqual((code, out), (66, ""), err)
            self.assertIn("pbs accepted job 7.srv but will never run it: Can Never Run: Not enough total nodes available", err)
            self.assertIn("hint: the job is cancelled; request what the cluster has", err)
            self.assertEqual(self.read("deleted"), "7.srv\n")
            self.assertEqual(os.listdir(os.path.join(self.folder, "runs")), [])
            os.unlink(os.path.join(self.folder, "deleted"))

    def test_no_command_of_pbs_gets_the_variables_of_a_job_of_slurm(self):
        dump = f'env | grep -E "^(SLURM|SBATCH)_" >>{self.folder}/leaked'
        for name, script in ANSWERS.items():
            self.write(f"bin/{name}", f"#!/bin/sh\n{dump}\n{script}\n")
        self.environment.update({"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-6]", "SBATCH_TIMELIMIT": "1"})
        self.assertEqual(self.submit("Not Running: Insufficient amount of resource: ncpus")[0], 0)
        self.assertEqual(self.read("leaked"), "")

    def test_a_sweep_goes_to_the_scheduler_that_is_named_from_inside_a_job_of_another_too(self):
        self.write("bin/sbatch", "#!/bin/sh\necho no >&2; exit 1\n")
        for variables in ({}, {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n1", "SLURM_NNODES": "1"}):
            self.environment.update(variables)
            code, out, err = self.submit("", "--sweep", "--axis", "nodes=1,2", "--dry-run")
            self.assertEqual(code, 0, err)
            self.assertEqual(out.count("#PBS -N big"), 2, out)

    def test_one_that_has_to_wait_stays(self):
        code, out, err = self.submit("Not Running: Insufficient amount of resource: ncpus")
        self.assertEqual((code, out), (0, "7.srv\n"), err)
        self.assertFalse(self.exists("deleted"))


class InsideAJobOfPbs(support.Case):
    """A job that is a command (qsub -- dlrun ...) has no login shell and so no PATH to PBS's programs."""

    def setUp(self):
        super().setUp()
        self.write("nodes", os.uname().nodename + "\n")
        os.makedirs(os.path.join(self.folder, "pbs/bin"))
        self.environment.update({"PBS_JOBID": "7.srv", "PBS_NODEFILE": os.path.join(self.folder, "nodes"), "PATH": "/usr/bin:/bin",
                                 "PBS_CONF_FILE": os.path.join(self.folder, "pbs.conf")})

    def program(self, name, script):
        os.chmod(self.write(f"pbs/bin/{name}", f"#!/bin/sh\n{script}\n"), 0o755)

    def run_it(self, code, text):
        got, _, err = self.dlrun("--run-dir", "run", "--via", "pbs", "--framework", "plain", "--", "true")
        self.assertEqual(got, code, err)
        self.assertIn(text, err)
        subprocess.run(["rm", "-rf", f"{self.folder}/run"], check=True)

    def test_programs_of_pbs_are_found_by_its_configuration_and_what_fails_is_told(self):
        self.run_it(69, "neither pbs_tmrsh nor pbsdsh is found")
        self.write("pbs.conf", f"PBS_EXEC={self.folder}/pbs\n")
        self.program("pbs_tmrsh", "exit 254")
        self.run_it(69, "hint: dlrun must be at the same path on every node; --stage copies it")
        self.program("pbs_tmrsh", "exit 65")
        self.run_it(69, "hint: every node must see the run directory: name one that they share, with --run-dir")

    def test_a_job_without_ranks_is_told_apart(self):
        self.write("pbs.conf", f"PBS_EXEC={self.folder}/pbs\n")
        self.write("nodes", "")
        self.program("pbs_tmrsh", "exit 1")
        self.environment["PATH"] = self.folder  # Slurm has a qstat, too
        jobs = json.dumps({"Jobs": {"7.srv": {"exec_vnode": f"({os.uname().nodename}:ncpus=1)"}}})
        self.program("qstat", f"echo '{jobs}'")
        self.run_it(69, "PBS starts nothing on the nodes of this job: it has mpiprocs=0")


# Where each flag of submit must arrive: a key of the frozen job with its value, a directive, a word of the script's command; or it
# is refused by name, or is about submitting alone.
def frozen(key, value):
    return lambda test: test.assertEqual(str(test.frozen(key)), str(value))


def directive(text):
    return lambda test: test.assertIn(text, test.script().splitlines())


def word(text):
    return lambda test: test.assertIn(text, test.script().splitlines()[-1].split())


FLAGS = {
    "--framework": (["mpi"], [frozen("framework", "mpi")]),
    "--name": (["tulips"], [frozen("name", "tulips"), directive("#SBATCH --job-name=tulips")]),
    "--nodes": (["3"], [frozen("resources.nodes", 3), directive("#SBATCH --nodes=3")]),
    "--gpus-per-node": (["4"], [frozen("resources.gpus-per-node", 4), directive("#SBATCH --gres=gpu:4")]),
    "--tasks-per-node": (["2"], [frozen("resources.tasks-per-node", 2), directive("#SBATCH --ntasks-per-node=2")]),
    "--cpus-per-task": (["5"], [frozen("resources.cpus-per-task", 5), directive("#SBATCH --cpus-per-task=5")]),
    "--walltime": (["7min"], [frozen("resources.walltime", "7min"), directive("#SBATCH --time=0:07:00")]),
    "--mpi": (["pmi1"], [frozen("launch.mpi", "pmi1")]),
    "--via": (["ssh"], [frozen("launch.via", "ssh")]),
    "--stage": ([], [frozen("launch.stage", True)]),
    "--tensor-parallel": (["2", "--tasks-per-node", "2"], [frozen("parallel.tensor", 2)]),
    "--pipeline-parallel": (["3", "--tasks-per-node", "3"], [frozen("parallel.pipeline", 3)]),
    "--retries": (["6"], [frozen("launch.retries", 6)]),
    "--no-output-limit": (["20s"], [frozen("launch.no-output-limit", "20s")]),
    "--no-progress-limit": (["21s"], [frozen("launch.no-progress-limit", "21s")]),
    "--no-bind": ([], [frozen("launch.bind", False)]),
    "--site": (["perlmutter"], [frozen("resources.constraint", "gpu")]),
    "--set": (["launch.grace=9s"], [frozen("launch.grace", "9s")]),
    "--run-dir": (["here"], [word("--run-dir=here")]),
    "--framework-dir": (["more"], [word("--framework-dir=more")]),
    "--verbose": ([], [word("--verbose")]),
    "--quiet": ([], [word("--quiet")]),
    "--color": (["never"], [word("--color=never")]),
}
REFUSED = {"--allocation": "a.json", "--hostfile": "h", "--private-hostfile": "h", "--hosts": "a,b"}
ABOUT_SUBMITTING = {"--scheduler", "--dry-run", "--chain", "--epochs", "--mtbf", "--measured", "--probe", "--sweep", "--axis", "--json",
                    "--help"}

HUNG = """framework: plain
command: [sh, -c, "echo first; exec sleep 1000"]
resources: {nodes: 1, tasks-per-node: 1}
"""
SECRET = "hunter2-and-a-half"


class SubmittedJob(support.Case):
    """The script is started by hand where a Slurm would start it; dlrun then runs on this machine."""

    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "bin"))
        os.makedirs(os.path.join(self.folder, "more"))
        os.chmod(self.write("bin/sbatch", "#!/bin/sh\necho 7\n"), 0o755)
        self.environment["PATH"] = os.path.join(self.folder, "bin") + ":/usr/bin:/bin"
        self.environment["HOME"] = self.folder
        self.write("job.yaml", "framework: plain\ncommand: [echo, first]\n")

    def submit(self, *arguments):
        for path in glob.glob(f"{self.folder}/runs/submit-*"):
            os.rename(path, f"{self.folder}/old-{os.path.basename(path)}")
        code, out, err = self.dlrun("submit", "--scheduler", "slurm", *arguments)
        self.assertEqual((code, out), (0, "7\n"), err)
        [self.submission] = glob.glob(f"{self.folder}/runs/submit-*")

    def script(self):
        return self.read(f"{self.submission}/job.sh")

    def frozen(self, key):
        value = json.loads(self.read(f"{self.submission}/spec.json"))["job"]["value"]
        for part in key.split("."):
            value = value[part]
        return value

    def run_script(self):
        done = subprocess.run(["bash", f"{self.submission}/job.sh"], env=self.environment, cwd="/", text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_every_flag_is_in_the_job_or_is_refused(self):
        known = set(re.findall(r"(?m)^\s+(?:-\w,)?(--[a-z][a-z-]*)", self.dlrun("submit", "--help")[1]))
        self.assertEqual(known, set(FLAGS) | set(REFUSED) | ABOUT_SUBMITTING)
        for flag, (values, arrives) in FLAGS.items():
            with self.subTest(flag):
                self.submit(flag, *values, "job.yaml")
                for check in arrives:
                    check(self)
        for flag, value in REFUSED.items():
            code, _, err = self.dlrun("submit", "--scheduler", "slurm", flag, value, "job.yaml")
            self.assertEqual(code, 64, err)
            self.assertIn(flag, err)
        code, _, err = self.dlrun("submit", "--scheduler", "slurm", "--chain", "3", "--run-dir", "here", "job.yaml")
        self.assertEqual(code, 64, err)
        self.assertIn("--run-dir here: the jobs of a chain have run directories of their own", err)

    def test_a_job_file_that_changes_while_the_job_waits_changes_nothing(self):
        for change in (lambda: self.write("job.yaml", "framework: plain\ncommand: [echo, SECOND]\n"),
                       lambda: os.unlink(f"{self.folder}/job.yaml")):
            self.write("job.yaml", "framework: plain\ncommand: [cat, data]\n")
            self.write("data", "first\n")
            self.submit("--run-dir", "run", "job.yaml", "--", "data")
            change()
            code, out = self.run_script()
            self.assertEqual(code, 0, out)
            self.assertEqual(out.count("first"), 2, out)
            subprocess.run(["rm", "-r", f"{self.folder}/run"], check=True)
        self.assertEqual([stat.S_IMODE(os.stat(path).st_mode) for path in (self.submission, f"{self.submission}/spec.json")],
                         [0o700, 0o600])

    def test_a_flag_of_submit_ends_a_hung_job(self):
        self.write("job.yaml", HUNG)
        self.submit("--no-output-limit", "1s", "--run-dir", "run", "job.yaml")
        code, out = self.run_script()
        self.assertEqual(code, 71, out)
        self.assertIn("no rank printed anything", out)

    def test_mistakes_in_the_job_still_name_the_line_of_the_job_file(self):
        self.write("job.yaml", "framework: plain\ncommand: [no-such-program-of-ours]\nenvironment:\n  container: {image: a.sif}\n")
        self.submit("job.yaml")
        sources = json.loads(self.read(f"{self.submission}/spec.json"))["job"]["sources"]
        self.assertEqual(sources["/environment/container/image"], "job.yaml:4:22")

    def test_secrets_reach_the_ranks_and_no_file_of_the_submission(self):
        self.write("job.yaml", f"""framework: plain
command: [bash, -c, 'test "$HF_TOKEN" = "$2" && test "$A_TOKEN" = "$2" && echo got them', sh, --api-key, {SECRET}]
environment: {{set: {{HF_TOKEN: {SECRET}}}, setup: ['export A_TOKEN={SECRET}']}}
""")
        self.submit("--run-dir", "run", "job.yaml")
        for path in glob.glob(f"{self.submission}/*"):
            self.assertNotIn(SECRET, self.read(path), path)
        code, out = self.run_script()
        self.assertEqual(code, 0, out)
        self.assertIn("got them", out)
        os.rename(f"{self.folder}/job.yaml", f"{self.folder}/elsewhere.yaml")
        subprocess.run(["rm", "-r", f"{self.folder}/run"], check=True)
        code, out = self.run_script()
        self.assertEqual(code, 65, out)
        self.assertIn("environment.set.HF_TOKEN cannot be read", out)
        self.assertNotIn(SECRET, out)
        self.write("job.yaml", self.read("elsewhere.yaml").replace("export A_TOKEN", "echo; export A_TOKEN"))
        self.assertIn("the secret in environment.setup.0 cannot be read", self.run_script()[1])

    def test_a_secret_in_a_command_that_is_one_text_is_read_again_too(self):
        self.write("job.yaml", f"framework: plain\ncommand: echo got --api-key {SECRET}\n")
        self.submit("--run-dir", "run", "job.yaml")
        self.assertNotIn(SECRET, self.read(f"{self.submission}/spec.json"))
        code, out = self.run_script()
        self.assertEqual(code, 0, out)
        self.assertIn(f"got --api-key {SECRET}", out)

    def test_a_secret_that_was_typed_is_refused_since_no_file_may_keep_it(self):
        for words in (["--set", f"environment.set.HF_TOKEN={SECRET}", "job.yaml"], ["job.yaml", "--", "--api-key", SECRET]):
            code, out, err = self.dlrun("submit", "--scheduler", "slurm", *words)
            self.assertEqual((code, out), (64, ""), err)
            self.assertIn("has the value of a secret, which a submission does not keep", err)
            self.assertNotIn(SECRET, err)
        self.assertFalse(self.exists("runs"))


if __name__ == "__main__":
    support.main()
