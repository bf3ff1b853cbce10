#!/usr/bin/env python3
"""The environment of the ranks, with real tools: Environment Modules, a virtual environment, conda's shell hook, and a
container of Charliecloud."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import support

# What `conda shell.bash hook` writes, cut to what activation does.
CONDA = r"""#!/bin/bash
case $1 in
  shell.bash) cat <<'HOOK'
conda() {
  case $1 in
    activate)
      if [[ ! -d $CONDA_ROOT/envs/$2 ]]; then
        printf '\nEnvironmentNameNotFound: Could not find conda environment: %s\n\n' "$2" >&2
        return 1
      fi
      export CONDA_DEFAULT_ENV=$2 CONDA_PREFIX=$CONDA_ROOT/envs/$2 CONDA_SHLVL=1 PATH=$CONDA_ROOT/envs/$2/bin:$PATH
      local script
      for script in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do source "$script"; done
      ;;
  esac
}
HOOK
  ;;
esac
"""


# What container engines do with variables, by their manuals: the image has NCCL_DEBUG=image, and it wins but for what each
# is told in its own way. The command behind their own words runs right here.
ENGINES = {
    "shifter": 'while [[ $1 == --* ]]; do shift; done; export NCCL_DEBUG=image; exec "$@"',
    "sarus": 'shift; while [[ $1 == --* ]]; do shift; done; shift; export NCCL_DEBUG=image; exec "$@"',
    "apptainer": 'while [[ $1 != ./image.sif && $1 != */image.sif ]]; do shift; done; shift; export NCCL_DEBUG=image\n'
                 'for name in ${!APPTAINERENV_*}; do export "${name#APPTAINERENV_}=${!name}"; done; exec "$@"',
    "srun": 'names=; while [[ $1 == --* ]]; do [[ $1 == --container-env=* ]] && names=,${1#*=},; shift; done\n'
            '[[ $names == *,NCCL_DEBUG,* ]] || export NCCL_DEBUG=image; export SLURM_PROCID=0; exec "$@"',
}


class Environment(support.Case):
    def test_agent_and_ranks_are_made_known_to_pbs(self):
        """PBS counts and suspends the sessions that it knows; `pbs_attach` tells it of another."""
        self.script("bin/pbs_attach", f'#!/bin/bash\necho "$@" >>{self.folder}/attached\n')
        self.environment.update({"PATH": f"{self.folder}/bin:{self.environment['PATH']}", "PBS_JOBID": "7.srv"})
        code, _, err = self.dlrun("--scheduler", "local", "--tasks-per-node", "2", "--run-dir", "run", "--framework", "plain", "--", "true")
        self.assertEqual(code, 0, err)
        attached = [line.split() for line in self.read("attached").splitlines()]
        self.assertEqual({tuple(words[:3]) for words in attached}, {("-j", "7.srv", "-p")})
        ranks = [str(event["pid"]) for event in self.events() if event["event"] == "started"]
        self.assertEqual((len(attached), [words[3] for words in attached[1:]]), (3, ranks))

    def job(self, environment, *command):
        words = ", ".join(f"'{word}'" for word in command)
        return self.write("job.yaml", f"framework: plain\ncommand: [{words}]\nenvironment: {environment}\n")

    def script(self, name, text):
        os.makedirs(os.path.dirname(os.path.join(self.folder, name)), exist_ok=True)
        os.chmod(self.write(name, text), 0o755)

    def test_a_module_is_loaded_on_the_node_and_one_that_is_not_there_is_named(self):
        self.script("modules/trainer/1.0", "#%Module1.0\nsetenv TRAINER_HOME /opt/trainer\nprepend-path PATH /opt/trainer/bin\n")
        self.environment["MODULEPATH"] = f"{self.folder}/modules"
        code, out, err = self.dlrun("--quiet", self.job("{modules: [trainer/1.0]}", "sh", "-c",
                                                        'echo "$TRAINER_HOME ${PATH%%:*} $LOADEDMODULES"'))
        self.assertEqual((code, out), (0, "[worker 0] /opt/trainer /opt/trainer/bin trainer/1.0\n"), err)

        code, _, err = self.dlrun("--quiet", self.job("{modules: [trainer/2.0]}", "touch", "ran"))
        self.assertEqual(code, 69, err)
        self.assertIn("module load trainer/2.0", err)
        self.assertIn("Unable to locate a modulefile for 'trainer/2.0'", err)
        self.assertFalse(self.exists("ran"))

    def test_module_paths_come_before_the_modules_also_by_hand(self):
        self.script("my modules/trainer/2.0", "#%Module1.0\nsetenv TRAINER_HOME /opt/two\n")
        code, out, err = self.dlrun("--quiet", "--run-dir", "run", self.job("{module-paths: [my modules], modules: [trainer/2.0]}",
                                                                            "printenv", "TRAINER_HOME"))
        self.assertEqual((code, out), (0, "[worker 0] /opt/two\n"), err)
        script = f"{self.folder}/run/nodes/{os.listdir(self.folder + '/run/nodes')[0]}"
        done = subprocess.run(["bash", script], env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "/opt/two\n"), done.stderr)

    def test_a_job_that_is_refused_before_anything_starts_leaves_the_name_of_its_run_directory_free(self):
        self.write("checked.yaml", "name: checked\nsummary: s\nchecks: [[sh, -c, 'test -e data || { echo no data >&2; exit 66; }']]\n")
        run = lambda name: self.dlrun("--quiet", "--framework-dir", self.folder, "--framework", "checked", "--run-dir", name, "--", "true")  # noqa: E731
        os.makedirs(os.path.join(self.folder, "there"))
        for name, left in (("new", False), ("there", True)):
            code, _, err = run(name)
            self.assertEqual(code, 66, err)
            self.assertEqual(self.exists(name), left)
        self.assertEqual(os.listdir(os.path.join(self.folder, "there")), [])
        self.write("writes.yaml", "name: writes\nsummary: s\nchecks: [[sh, -c, 'echo mine > there/mine; exit 66']]\n")
        code, _, err = self.dlrun("--quiet", "--framework-dir", self.folder, "--framework", "writes", "--run-dir", "there",
                                  "--set", f"launch.metrics-file={self.folder}/run.prom", "--", "true")
        self.assertEqual(code, 66, err)
        self.assertEqual(os.listdir(os.path.join(self.folder, "there")), ["mine"])  # somebody else's
        os.remove(os.path.join(self.folder, "there", "mine"))
        self.assertRegex(self.read("run.prom"), r'dlrun_run_stage\{.*stage="ended"\} 1')
        self.write("data", "")
        for name in ("new", "there"):
            self.assertEqual(run(name)[0], 0)
            self.assertTrue(self.exists(f"{name}/record.json"))

    def test_checks_run_after_the_setup_lines_that_provide_what_is_checked(self):
        self.write("checked.yaml", "name: checked\nsummary: s\nchecks: [[sh, -c, 'test -e data || { echo no data in $PWD >&2; exit 66; }']]\n")
        job = "framework: checked\ncommand: [cat, data]\n"
        code, _, err = self.dlrun("--framework-dir", self.folder, self.write("job.yaml", job))
        self.assertEqual(code, 66, err)
        self.assertIn(f"no data in {self.folder}", err)
        job += "environment: {{setup: ['{}']}}\n"
        code, _, err = self.dlrun("--framework-dir", self.folder, self.write("job.yaml", job.format("true")))
        self.assertEqual(code, 66, err)
        self.assertIn(f"no data in {self.folder}", err)
        code, out, err = self.dlrun("--quiet", "--framework-dir", self.folder, self.write("job.yaml", job.format("echo brought > data")))
        self.assertEqual((code, out), (0, "[worker 0] brought\n"), err)

    def test_a_module_command_that_does_nothing_is_no_success(self):
        self.environment["BASH_FUNC_module%%"] = "() { :; }"
        code, _, err = self.dlrun("--quiet", self.job("{modules: [trainer/1.0]}", "touch", "ran"))
        self.assertEqual(code, 69, err)
        self.assertIn("'module load' claims success and has loaded nothing", err)
        self.assertFalse(self.exists("ran"))

    def test_a_virtual_environment(self):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", f"{self.folder}/my env"], check=True)
        code, out, err = self.dlrun("--quiet", self.job("{activate: 'venv:my env'}", "python", "-c", "import sys; print(sys.prefix)"))
        self.assertEqual((code, out), (0, f"[worker 0] {self.folder}/my env\n"), err)

    def test_a_conda_environment(self):
        self.script("conda/bin/conda", CONDA)
        self.script("conda/envs/torch/etc/conda/activate.d/cuda.sh", "export FROM_HOOK=yes\n")
        self.environment.update({"CONDA_ROOT": f"{self.folder}/conda", "CONDA_EXE": f"{self.folder}/conda/bin/conda"})
        code, out, err = self.dlrun("--quiet", self.job("{activate: conda:torch}", "sh", "-c",
                                                        'echo "$CONDA_DEFAULT_ENV $FROM_HOOK ${PATH%%:*}"'))
        self.assertEqual((code, out), (0, f"[worker 0] torch yes {self.folder}/conda/envs/torch/bin\n"), err)

        code, _, err = self.dlrun("--quiet", self.job("{activate: conda:tf}", "touch", "ran"))
        self.assertEqual(code, 69, err)
        self.assertIn("Could not find conda environment: tf", err)
        self.assertFalse(self.exists("ran"))

    def test_a_default_gives_way_to_the_prolog_the_user_and_the_job_file(self):
        """default < prolog, user's environment < job file < dlrun's own; set but empty counts as set."""
        self.write("order.yaml", "name: order\nsummary: s\nprocess: per-rank\nmpi: none\nenv: {OF_ADAPTER: adapter}\n"
                   "defaults: {A: default, B: default, C: default, D: default, E: default, DENIED: default}\n")
        self.environment.pop("OMP_NUM_THREADS", None)
        self.environment.update({"C": "user", "D": "user", "E": "", "DENIED": "user"})
        job = self.write("job.yaml", """framework: order
environment:
  setup: [export B=prolog, "export DLRUN_RANK=prolog"]
  set: {D: job}
  deny: [DENIED]
command: [sh, -c, 'echo "$A $B $C $D [$E] $DENIED $DLRUN_RANK $OF_ADAPTER ${OMP_NUM_THREADS:-unset}"']
""")
        code, out, err = self.dlrun("--quiet", "--framework-dir", self.folder, "--run-dir", "run", job)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"^\[worker 0\] default prolog user job \[\] default 0 adapter \d+\n$")

    def test_how_long_it_took_is_in_the_events_and_its_output_in_a_log(self):
        code, _, err = self.dlrun("--run-dir", "run", self.job("{setup: [echo from the setup, sleep 0.3]}", "true"))
        self.assertEqual(code, 0, err)
        seconds = [event["seconds"] for event in self.events() if event["event"] == "prolog"]
        self.assertEqual(len(seconds), 1)
        self.assertGreaterEqual(seconds[0], 0.3)
        logs = [name for name in os.listdir(f"{self.folder}/run/logs") if name.startswith("prolog")]
        self.assertEqual([self.read(f"run/logs/{name}") for name in logs], ["from the setup\n"])

    def test_the_jobs_variables_win_over_the_images(self):
        for program, text in ENGINES.items():
            self.script(f"engines/{program}", f"#!/bin/bash\n{text}\n")
        self.environment["PATH"] = f"{self.folder}/engines:{self.environment['PATH']}"
        for engine in ("shifter", "sarus", "apptainer", "pyxis"):
            with self.subTest(engine):
                job = self.job(f"{{set: {{NCCL_DEBUG: \"IN FO\"}}, container: {{image: image.sif, engine: {engine}}}}}", "sh", "-c", 'echo "$NCCL_DEBUG"')
                code, out, err = self.dlrun("--quiet", job)
                self.assertEqual((code, out), (0, "[worker 0] IN FO\n"), err)

    def test_ranks_in_a_container(self):
        for folder in ("bin", "dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "usr/bin", "var"):
            os.makedirs(f"{self.folder}/image/{folder}")
        shutil.copy("/bin/busybox", f"{self.folder}/image/bin")  # busybox-static: needs no libraries
        for name in ("sh", "cat"):
            os.symlink("busybox", f"{self.folder}/image/bin/{name}")
        for name in ("passwd", "group", "hosts", "resolv.conf", "machine-id"):
            self.write(f"image/etc/{name}", "")
        self.write("image/etc/who", "inside the image\n")
        self.environment["USER"] = "root"  # ch-run asks for it
        job = self.job("{container: {image: ./image, engine: charliecloud}}", "sh", "-c",
                       'cat /etc/who; echo "$DLRUN_RANK in $PWD"; : >said.$DLRUN_RANK; '
                       'until [ -e said.0 ]; do :; done; exit $DLRUN_RANK')  # rank 1 ends the run: not before 0 has spoken
        code, out, err = self.dlrun("--quiet", "--tasks-per-node", "2", job)
        self.assertEqual(code, 1, err)
        for rank in (0, 1):
            self.assertIn(f"[worker {rank}] inside the image\n", out)
            self.assertIn(f"[worker {rank}] {rank} in {self.folder}\n", out)
        self.assertIn("worker 1 (rank 1)", err)

    def test_variables_in_paths_and_words_arrive_expanded_and_the_plan_shows_both(self):
        self.environment.update({"SCRATCH": f"{self.folder}/scratch", "HOME": f"{self.folder}/home", "N": "17", "TMPDIR": "/tmp"})
        os.mkdir(f"{self.folder}/home")
        self.script("show", '#!/bin/sh\nprintf "[%s]" "$@"\n')
        job = self.write("job.yaml", "framework: plain\ncommand: [./show, $SCRATCH/data, '${N}', ~/a b, $$N, $MINE/x, 'a$']\n"
                         "checkpoint: {dir: $SCRATCH/ckpt}\nenvironment: {set: {MINE: /mine}}\n")
        code, out, err = self.dlrun("--quiet", "--run-dir", "run", job, "--", "$N", "~/c")
        self.assertEqual(code, 0, err)
        self.assertIn(f"[{self.folder}/scratch/data][17][{self.folder}/home/a b][$N][/mine/x][a$][$N][~/c]", out)
        self.assertEqual(json.loads(self.read("run/spec.json"))["checkpoint"]["dir"], f"{self.folder}/scratch/ckpt")
        self.assertFalse(self.exists("$SCRATCH"))
        code, out, err = self.dlrun("plan", "--explain", job)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, rf"checkpoint.dir +{self.folder}/scratch/ckpt +\S+job.yaml:3:19, written \$SCRATCH/ckpt")
        for word, why in (("$NO_SUCH", "is unset"), ("$TMPDIR/x", "differs between nodes"), ("$SLURM_PROCID", "differs")):
            bad = self.write("bad.yaml", f"command: [./show, {word}]\n")
            code, _, err = self.dlrun(bad)
            self.assertEqual(code, 65, err)
            self.assertRegex(err, r"bad.yaml:1:19: command\[1\]: \$\w+ " + why)

    def test_a_job_may_name_what_its_scheduler_sets_when_it_is_submitted_and_has_it_when_it_runs(self):
        job = self.write("job.yaml", "framework: plain\ncommand: [echo, of, $SLURM_JOB_ID]\nresources: {walltime: 1h, nodes: 1}\n")
        code, _, err = self.dlrun("submit", "--scheduler", "slurm", "--dry-run", job)
        self.assertEqual(code, 0, err)
        code, _, err = self.dlrun(job)
        self.assertEqual(code, 65, err)
        self.assertIn("$SLURM_JOB_ID is unset", err)
        self.environment["SLURM_JOB_ID"] = "4711"
        code, out, err = self.dlrun("--quiet", "--scheduler", "local", job)
        self.assertEqual(code, 0, err)
        self.assertIn("of 4711", out)

    def test_a_text_for_a_shell_keeps_its_dollar_signs(self):
        job = self.job("{set: {MINE: mine}}", "env", "A=1", "bash", "-c", "echo $MINE-$DLRUN_RANK-$A")
        code, out, err = self.dlrun("--quiet", job)
        self.assertEqual(code, 0, err)
        self.assertIn("mine-0-1", out)


class Memory(support.Case):
    def test_the_memory_of_ranks_is_bound_as_the_job_says(self):
        show = 'head -n 1 /proc/self/numa_maps; grep THP_enabled /proc/self/status; echo "tunables $GLIBC_TUNABLES"'
        nodes = pathlib.Path("/sys/devices/system/node/has_memory").read_text().strip()
        for policy, huge_pages, wanted in (("local", "on", " bind:"), ("interleave", "off", f" interleave:{nodes} "),
                                           ("system", "system", " default "), (nodes.split("-")[0].split(",")[0], "off", " bind:0 ")):
            with self.subTest(policy):
                code, out, err = self.plain(show, "--set", f"launch.memory={policy}", "--set", f"launch.huge-pages={huge_pages}")
                self.assertEqual(code, 0, err)
                self.assertIn(wanted, out)
                self.assertRegex(out, rf"THP_enabled:\s+{0 if huge_pages == 'off' else 1}")
                self.assertIn("tunables glibc.malloc.hugetlb=1" if huge_pages == "on" else "tunables \n", out)
                shutil.rmtree(os.path.join(self.folder, "run"))

    def test_a_wrap_that_is_not_there_is_named(self):
        code, _, err = self.plain("true", "--set", "launch.wrap.command=[no-such-profiler, -x]")
        self.assertNotEqual(code, 0)
        self.assertIn("hint: launch.wrap.command has no-such-profiler: install it", err)

    def test_a_numa_node_that_is_not_there_is_named(self):
        code, _, err = self.plain("true", "--set", "launch.memory=0,777")
        self.assertNotEqual(code, 0)
        self.assertIn("launch.memory: 0,777: there is no NUMA node 777 with memory here", err)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "run")))  # before anything was started
        code, _, err = self.plain("true", "--set", "launch.memory=near")
        self.assertEqual(code, 64)
        self.assertIn("launch.memory: 'near' is not a policy for memory", err)


if __name__ == "__main__":
    support.main()
