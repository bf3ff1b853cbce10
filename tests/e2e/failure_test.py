#!/usr/bin/env python3
"""How failures end: the right exit code, the first_failure named, its last lines shown, nothing left running."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import support

# Rank 1 fails once rank 0 can hear of it; each rank writes down what it hears.
HEARING = """\
import json, os, sys, time
sys.path.insert(0, {client!r})
import dlrun_client
attempt, rank = os.environ["DLRUN_ATTEMPT"], os.environ["DLRUN_RANK"]
def changed(change):
    open(f"heard-{{attempt}}-{{rank}}", "w").write(json.dumps(change))
    sys.exit(0)
with dlrun_client.connect() as dlrun:
    dlrun.on_world_changed(changed)
    for step in range(1000000):
        if rank == "1" and os.path.exists("ready"):
            sys.exit(3)
        time.sleep(0.02)
        dlrun.report(step=step + 1, every=0)
        if rank == "0":
            open("ready", "w").close()
"""


class Failure(support.Case):
    def test_a_failing_rank_gives_its_code_and_its_last_lines(self):
        code, _, err = self.plain('[ $DLRUN_RANK = 1 ] && { echo last words >&2; exit 3; }; sleep 1000', "--tasks-per-node", "3")
        self.assertEqual(code, 3)
        self.assertRegex(err, r"dlrun: error: worker 1 \(rank 1\) on \S+: exit code 3\n  its last lines:\n  \| last words\n"
                              r"  hint: its full output is in run/logs/0001-worker-1.log\n$")
        record = self.record()
        self.assertEqual(record["exit_code"], 3)
        self.assertEqual(record["attempts"][0]["first_failure"]["rank"], 1)
        self.assertEqual(record["attempts"][0]["ranks"][0]["end"], "killed by SIGTERM (15)")

    def test_the_exception_is_in_the_headline_and_in_the_record(self):
        self.write("train.py", 'import os, time\nif os.environ["DLRUN_RANK"] == "1":\n    raise ValueError("label 11 is out of range in '
                               'sample 4242")\ntime.sleep(1000)\n')
        code, _, err = self.dlrun("--framework", "plain", "--run-dir", "run", "--tasks-per-node", "2", "--", "python3", "train.py")
        self.assertEqual(code, 1)
        headline = "exit code 1: ValueError: label 11 is out of range in sample 4242"
        self.assertRegex(err, rf"dlrun: error: worker 1 \(rank 1\) on \S+: {headline}\n  its last lines:\n  \| Traceback")
        attempt = self.record()["attempts"][0]
        self.assertTrue(attempt["reason"].endswith(headline))
        self.assertEqual(attempt["first_failure"]["cause"], "ValueError: label 11 is out of range in sample 4242")

    def test_the_error_file_of_pytorch_tells_the_cause(self):
        script = 'echo \'{"message": {"message": "RuntimeError: NCCL timeout", "extraInfo": {}}}\' >"$TORCHELASTIC_ERROR_FILE"; exit 1'
        job = self.write("job.yaml", f"framework: plain\ncommand: [bash, -c, {json.dumps(script)}]\n"
                                     f"environment: {{set: {{TORCHELASTIC_ERROR_FILE: {self.folder}/error.json}}}}\n")
        code, _, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 1)
        self.assertIn(": exit code 1: RuntimeError: NCCL timeout\n", err)

    def test_after_the_first_failure_others_speak_to_their_logs_only(self):
        script = ('if [ $DLRUN_RANK = 0 ]; then until [ -e ready ]; do sleep 0.02; done; echo first >&2; exit 7; fi; '
                  'trap "echo a victim >&2; exit 8" TERM; touch ready; while :; do sleep 0.02; done')
        code, _, err = self.plain(script, "--tasks-per-node", "2")
        self.assertEqual(code, 7)
        self.assertNotIn("a victim", err)
        self.assertNotIn("failed after it", err)  # it was told to end
        self.assertIn("a victim\n", self.read("run/logs/0001-worker-1.log"))

    def test_a_program_without_a_module_is_named(self):
        code, _, err = self.dlrun("--framework", "plain", "--", sys.executable, "-c", "import no_such_module")
        self.assertEqual(code, 1)
        self.assertIn("exit code 1: ModuleNotFoundError: No module named 'no_such_module'\n", err)
        self.assertIn(f"hint: the program is {os.path.realpath(sys.executable)}; ", err)

    def test_a_script_that_env_starts_names_its_interpreter(self):
        os.mkdir(os.path.join(self.folder, "bin"))
        os.symlink(os.path.realpath(sys.executable), os.path.join(self.folder, "bin", "python3"))
        self.environment["PATH"] = os.path.join(self.folder, "bin") + ":" + self.environment["PATH"]
        for first in ("#!/usr/bin/env python3", "#!/usr/bin/env -S python3 -u"):
            os.chmod(self.write("train.py", f"{first}\nimport no_such_module\n"), 0o755)
            code, _, err = self.dlrun("--framework", "plain", "--", "./train.py")
            self.assertEqual(code, 1, err)
            self.assertIn(f"hint: the program is {os.path.realpath(sys.executable)}; ", err)
        code, _, err = self.dlrun("--framework", "plain", "--", "bash", "-c", "./train.py; exit $?")
        self.assertEqual(code, 1, err)
        self.assertNotIn("the program is /usr/bin/bash", err)

    def test_a_log_that_outgrows_the_limit_of_files_is_no_hint_to_itself(self):
        code, _, err = self.plain("ulimit -S -c 0; seq 100000", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
        self.assertEqual(code, 74)
        self.assertIn("File too large", err)
        self.assertIn("hint: the job's limit on file sizes is too small for this log: ulimit -f", err)
        self.assertNotIn("its whole output is in", err)

    def test_signals_that_end_a_rank_are_named(self):
        for name, number in (("KILL", 9), ("SEGV", 11)):
            with self.subTest(name):
                code, _, err = self.dlrun("--framework", "plain", "--", "bash", "-c", f"kill -{name} $$")
                self.assertEqual(code, 128 + number)
                self.assertIn(f"killed by SIG{name} ({number})", err)

    def test_a_rank_that_ignores_term_is_killed_after_the_grace(self):
        script = ('if [ $DLRUN_RANK = 0 ]; then until [ -e ignores ]; do sleep 0.02; done; exit 5; fi; '
                  'trap "" TERM; touch ignores; while :; do sleep 0.05; done')
        code, _, _ = self.plain(script, "--tasks-per-node", "2", "--set", "launch.grace=300ms")
        self.assertEqual(code, 5)
        self.assertEqual(self.record()["attempts"][0]["ranks"][1]["end"], "killed by SIGKILL (9)")

    def test_the_first_failure_is_named_not_those_that_follow(self):
        script = 'trap "exit 9" TERM; if [ $DLRUN_RANK = 2 ]; then exit 4; fi; while :; do sleep 0.02; done'
        code, _, err = self.plain(script, "--tasks-per-node", "4")
        self.assertEqual(code, 4)
        self.assertIn("worker 2 (rank 2)", err)

    def test_retries_are_as_many_as_were_asked_for_also_on_the_only_node(self):
        script = "echo $PPID >>tries; [ $(wc -l <tries) = 4 ]"
        code, _, err = self.plain(script, "--retries", "5")
        self.assertEqual(code, 0, err)
        self.assertEqual(len(set(self.read("tries").splitlines())), 1, "the agent serves all of them")
        self.assertEqual((len(self.read("tries").splitlines()), len(self.record()["attempts"])), (4, 4))
        self.assertNotIn("without", err)

    def test_a_retry_takes_over_what_the_setup_lines_left(self):
        setup = "[echo x >>setups, export LEFT=$RANDOM, ulimit -Sn 77, umask 027]"
        script = 'echo "$LEFT $(ulimit -Sn) $(umask)" >>starts; exit $((DLRUN_ATTEMPT < 3))'
        self.assertEqual(self.plain(script, "--retries", "2", "--set", f"environment.setup={setup}")[0], 0)
        self.assertEqual(len(self.read("setups").splitlines()), 1)
        starts = self.read("starts").splitlines()
        self.assertEqual(len(starts), 3)
        self.assertEqual(len(set(starts)), 1, starts)
        self.assertRegex(starts[0], r"^\d+ 77 0027$")

    def test_setup_lines_that_leave_a_process_run_again_in_a_retry(self):
        setup = "[echo x >>setups, 'sleep 600 & echo $! >helper']"
        script = "kill -0 $(cat helper) && exit $((DLRUN_ATTEMPT < 2))"
        code, _, err = self.plain(script, "--retries", "1", "--set", f"environment.setup={setup}")
        self.assertEqual(code, 0, err)
        self.assertEqual(len(self.read("setups").splitlines()), 2)

    def test_setup_lines_run_again_in_a_retry_where_files_are_staged(self):
        """What they made of a copy was removed with it."""
        self.write("words", "one")
        setup = "[echo x >>setups, cp $DLRUN_STAGE/words $DLRUN_STAGE/made]"
        script = "cat $DLRUN_STAGE/made >>starts; exit $((DLRUN_ATTEMPT < 2))"
        code, _, err = self.plain(script, "--retries", "1", "--set", f"environment.setup={setup}", "--set", "stage=[{from: words}]")
        self.assertEqual(code, 0, err)
        self.assertEqual((self.read("starts"), len(self.read("setups").splitlines())), ("oneone", 2))

    def test_a_program_hears_why_it_is_ended_and_what_the_next_attempt_is(self):
        self.write("program.py", HEARING.format(client=support.CLIENT))
        code, _, err = self.dlrun("--tasks-per-node", "2", "--retries", "1", "--framework", "plain", "--", "python3", "program.py")
        self.assertEqual(code, 0, err)
        reason = "rank 1: exit code 3"
        self.assertEqual(json.loads(self.read("heard-1-0")), [reason, True, 1, 2, 2, []])
        heard = json.loads(self.read("heard-2-0"))
        self.assertIn("exit code 3", heard[0])
        self.assertEqual(heard[1:], [False, 2, 2, 2, []])

    def test_the_agent_has_more_open_files_than_its_ranks(self):
        """The soft limit is for programs: it goes to the ranks as it was."""
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        code, out, err = self.plain("ulimit -Sn", "--tasks-per-node", "40", preexec_fn=few)
        self.assertEqual(code, 0, err)
        self.assertEqual([line.split("] ")[1] for line in out.splitlines()], ["64"] * 40)

    def test_too_few_open_files_are_named_before_any_rank_runs(self):
        code, _, err = self.plain("touch ran", "--tasks-per-node", "40",
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        self.assertEqual(code, 69, err)
        self.assertRegex(err, r"40 ranks on one node need about \d+ open files, and the limit is 64\n  hint: raise the hard limit")
        self.assertFalse(self.exists("ran"))

    def test_a_limit_of_threads_is_named(self):
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        more_than_there_is = 1 << 47  # the stack of a thread: the kernel refuses it as it refuses one thread too many
        code, _, err = self.plain("touch ran", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (more_than_there_is, hard)))
        self.assertEqual(code, 69, err)
        self.assertIn("error: cannot start a thread: Resource temporarily unavailable\n  hint: the limit of processes and threads is reached", err)
        self.assertFalse(self.exists("ran"))

    def test_a_small_stack_ends_neither_head_nor_agent(self):
        """A thread would get as little, and the loader of a driver's library needs more."""
        small = 128 << 10
        code, out, err = self.plain("ulimit -s", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (small, small)))
        self.assertEqual((code, out), (0, "[worker 0] 128\n"), err)
        self.assertNotIn("could not confirm", err)

    def test_children_left_behind_are_ended(self):
        code, _, err = self.plain("setsid sleep 1000 & (setsid bash -c 'trap \"\" TERM; while :; do sleep 0.1; done' &) ; sleep 0.3; exit 0")
        self.assertEqual(code, 0)
        self.assertRegex(err, r"ended \d+ stray process\(es\) of ranks")
        self.none_left()

    def test_a_program_that_is_not_there(self):
        code, _, err = self.dlrun("--framework", "plain", "--", "no-such-program")
        self.assertEqual(code, 65)
        self.assertIn("program 'no-such-program' is not found", err)

    def test_a_run_directory_in_use_is_not_overwritten(self):
        self.plain("echo first")
        code, _, err = self.plain("echo second")
        self.assertEqual(code, 74)
        self.assertIn("is in use\n  hint: name another with --run-dir", err)
        self.assertEqual(self.read("run/logs/0000-worker-0.log"), "first\n")

    def test_two_starts_at_once_do_not_share_a_run_directory(self):
        for round_ in range(6):
            if round_ % 2:
                os.mkdir(f"{self.folder}/same{round_}")
            runs = [self.start("--framework", "plain", "--run-dir", f"same{round_}", "--", "echo", f"from {i}") for i in range(3)]
            ends = [(*run.communicate(), run.returncode) for run in runs]
            self.assertEqual(sorted(code for _, _, code in ends), [0, 74, 74], ends)
            kept = [i for i, (_, _, code) in enumerate(ends) if code == 0][0]
            self.assertEqual(self.read(f"same{round_}/logs/0000-worker-0.log"), f"from {kept}\n")
            self.assertEqual(len(re.findall('"planned"', self.read(f"same{round_}/events.jsonl"))), 1)
            for _, err, code in ends:
                if code:
                    self.assertRegex(err, r"the run directory \S+ is in use\n")
            self.assertFalse(self.exists(f"same{round_}/.claimed"))
        self.write("file", "")
        code, _, err = self.dlrun("--run-dir", "file", "--", "true")
        self.assertEqual(code, 74)
        self.assertRegex(err, r"the run directory \S+ is no folder\n")

    def test_a_batch_job_that_is_requeued_goes_on_in_its_run_directory(self):
        allocation = self.write("allocation.json", json.dumps(
            {"schema": "dlrun.allocation/1", "scheduler": "slurm", "job_id": "7", "array_index": None, "end_time": None, "evidence": [],
             "nodes": [{"host": os.uname().nodename, "slots": 1, "cpus": 1, "gpus": None}]}))
        flags = ("--allocation", allocation, "--via", "local")
        script = 'cat run/state 2>/dev/null; echo "start $1" >>run/state; [ $1 = 2 ] || { sleep 1000 & wait; }'

        def start(number, killed):
            self.environment["SLURM_RESTART_COUNT"] = str(number)
            process = self.start("--framework", "plain", "--run-dir", "run", *flags, "--", "bash", "-c", script, "sh", str(number))
            if killed:
                support.wait_until(lambda: self.exists("run/state") and f"start {number}" in self.read("run/state"), "it runs")
                process.kill()  # as at the end of a preempted job
                process.wait()
                self.none_left()
                return "", ""
            return process.communicate()

        start(0, killed=True)
        code, _, err = self.plain("echo second", *flags)
        self.assertEqual(code, 74, err)  # another command of the same start
        self.assertIn("is in use\n", err)
        start(1, killed=True)
        self.environment["SLURM_RESTART_COUNT"] = "2"
        out, err = start(2, killed=False)
        self.assertEqual(out, "[worker 0] start 0\n[worker 0] start 1\n", err)
        self.assertRegex(err, r"slurm has started job 7 again: what its earlier start left is in \S+/run/restarts/2\n")
        self.assertEqual(self.record()["exit_code"], 0)
        for number in ("1", "2"):
            self.assertLessEqual({"spec.json", "plan.json", "logs", "events.jsonl", "job-start.json"},
                                 set(os.listdir(os.path.join(self.folder, "run/restarts", number))))
        self.assertEqual(self.read("run/restarts/2/logs/0000-worker-0.log"), "start 0\n")
        code, _, err = self.plain("echo third", *flags)  # the record of this start is never overwritten
        self.assertEqual(code, 74, err)

    def test_a_prolog_line_that_fails_ends_the_job_before_any_rank(self):
        job = self.write("job.yaml", "framework: plain\ncommand: [touch, ran]\n"
                                     "environment: {setup: ['echo preparing', 'export GREETING=hello', 'false-command --x']}\n")
        code, _, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 69)
        self.assertIn("the job's environment cannot be set up", err)
        self.assertIn("false-command", err)
        self.assertFalse(self.exists("ran"))

    def test_a_prolog_line_that_ends_the_shell_is_named_whatever_its_code(self):
        place = "environment.setup[1]: "
        for line, text in (("exit 0", f"the shell ended within {place}exit 0"), ("return 0", f"the shell ended within {place}return 0"),
                           ("exit 3", f"exit code 3 from {place}exit 3"), ("return 4", f"exit code 4 from {place}return 4"),
                           ("set -eu; echo $nosuch", f"from {place}set -eu; echo $nosuch"),
                           ("exec true", "a line of environment.setup ended the shell before the environment was ready")):
            with self.subTest(line):
                job = self.write("job.yaml", f"framework: plain\ncommand: [touch, ran]\nenvironment: {{setup: ['true', '{line}']}}\n")
                code, _, err = self.dlrun("--run-dir", "run", job)
                self.assertEqual(code, 69, err)
                self.assertRegex(err, r"dlrun: error: .*" + re.escape(text) + "\n")
                self.assertIn(text, self.record()["reason"])
                self.assertIn(line, err)
                self.assertFalse(self.exists("ran"))
                shutil.rmtree(os.path.join(self.folder, "run"))

    def test_options_and_arguments_that_a_prolog_line_sets_do_not_touch_our_own_lines(self):
        for line in ("set -eu", "set -euo pipefail", "set -C", "set -a", "set -- rank 1", "shift", "trap true EXIT", "false || true; set -e"):
            with self.subTest(line):
                job = self.write("job.yaml", "framework: plain\ncommand: [bash, -c, 'echo $A; export -p | grep -c dlrun_ || true']\n"
                                             f"environment: {{setup: ['{line}', 'export A=set']}}\n")
                code, out, err = self.dlrun("--quiet", job)
                self.assertEqual((code, out), (0, "[worker 0] set\n[worker 0] 0\n"), err)

    def test_a_prolog_that_hangs_ends_at_the_setup_timeout_and_leaves_nothing(self):
        job = self.write("job.yaml", "framework: plain\ncommand: [touch, ran]\nlaunch: {setup-timeout: 1s}\n"
                                     "environment: {setup: ['setsid sleep 1000 & sleep 1000']}\n")
        code, _, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 69, err)
        self.assertIn("the setup of its environment did not end within 1.0s (launch.setup-timeout)", err)
        self.assertFalse(self.exists("ran"))
        self.none_left()

    def test_the_prolog_is_no_part_of_the_start_timeout(self):
        for timeout in (1, 2, 4, 8, 16, 32):  # longer where the machine is so loaded that the start itself takes that long
            job = self.write("job.yaml", f"framework: plain\ncommand: [touch, ran]\nlaunch: {{start-timeout: {timeout}s}}\n"
                                         f"environment: {{setup: ['sleep {1.2 * timeout}']}}\n")
            code, _, err = self.dlrun(job)
            if code == 0:
                break
            self.assertRegex(err, "no agent from there within|its ranks were not started within")
            self.assertNotIn("setup", err)
        self.assertTrue(self.exists("ran"), err)

    def test_copies_under_a_launcher_refuse(self):
        for variables in ({"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2"}, {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}):
            code, _, err = self.dlrun("--framework", "plain", "--", "touch", "ran", env={**self.environment, **variables})
            self.assertEqual(code, 64, err)
            self.assertIn("each of them would start the whole job", err)
            self.assertFalse(self.exists("ran"))

    def test_a_launcher_inside_ranks_is_refused_before_anything_starts(self):
        self.write("torchrun", "#!/bin/sh\ntouch ran\n")
        os.chmod(f"{self.folder}/torchrun", 0o755)
        for framework, command in (("pytorch", ["./torchrun", "train.py"]), ("mpi", ["mpirun", "-n", "2", "hostname"]),
                                   ("pytorch", ["python3", "-m", "torch.distributed.run", "train.py"])):
            code, _, err = self.dlrun("--tasks-per-node", "2", "--framework", framework, "--", *command)
            self.assertEqual(code, 65, err)
            self.assertIn("once per rank (ranks: 2)", err)
            self.assertFalse(self.exists("ran") or self.exists("runs"))

    def test_a_prolog_gives_the_ranks_their_environment(self):
        job = self.write("job.yaml", "framework: plain\ncommand: [bash, -c, 'echo \"$GREETING\"']\n"
                                     "environment: {setup: [\"export GREETING='two\\nlines'\"]}\n".replace("\\n", "\n\n    "))
        code, out, err = self.dlrun("--run-dir", "run", "--quiet", job)
        self.assertEqual((code, out), (0, "[worker 0] two\n[worker 0] lines\n"), err)

    def test_a_full_disk_under_the_run_directory_ends_the_run_and_says_so(self):
        disk = os.path.join(self.folder, "small")
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=True)
        try:
            code, _, err = self.dlrun("--framework", "plain", "--run-dir", "small/run", "--quiet", "--", "bash", "-c",
                                      "for i in {1..100000}; do echo filling the disk with words $i; done")
            self.assertEqual(code, 74)
            self.assertIn("No space left on device", err)
            self.assertIn("there is no record of this run: ", err)
            # And where the ranks themselves end well.
            shutil.rmtree(os.path.join(disk, "run"))
            code, _, err = self.dlrun("--framework", "plain", "--run-dir", "small/other", "--", "bash", "-c",
                                      "head -c 1M /dev/zero >small/fill; true")
            self.assertEqual(code, 74, err)
            self.assertIn("there is no record of this run: ", err)
            self.assertIn("state      failed", self.dlrun("status", "small/other")[1])
            # And where somebody ends it: it did not fail.
            shutil.rmtree(os.path.join(disk, "other"))
            os.remove(os.path.join(disk, "fill"))
            process = self.start("--framework", "plain", "--run-dir", "small/third", "--", "bash", "-c", "head -c 1M /dev/zero >small/fill 2>/dev/null; touch up; sleep 1000")
            support.wait_until(lambda: self.exists("up"), "the disk is full")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate()
            self.assertEqual(process.returncode, 130, err)
            self.assertIn("there is no record of this run: ", err)
            self.assertIn("state      stopped (exit code 130)", self.dlrun("status", "small/third")[1])
        finally:
            subprocess.run(["umount", disk], check=True)


class BadEnvironment(support.Case):
    def test_a_temporary_folder_that_cannot_hold_a_socket_or_be_written(self):
        long = os.path.join(self.folder, "x" * 150)
        os.mkdir(long)
        for folder, code, words in ((long, 69, "shorter name"), ("/proc/no/such", 74, "can be written")):
            self.environment["TMPDIR"] = folder
            ended, _, err = self.dlrun("--framework", "plain", "--", "true")
            self.assertEqual(ended, code, err)
            self.assertIn("hint: set TMPDIR to a folder", err)
            self.assertIn(words, err)
        self.assertEqual(os.listdir(long), [])

    def test_all_three_standard_descriptors_closed(self):
        code = subprocess.run(["bash", "-c", f"exec {support.IN_SHELL} --framework plain --run-dir run -- bash -c 'echo fine; echo fine >&2' 0<&- 1>&- 2>&-"],
                              cwd=self.folder, env=self.environment, check=False).returncode
        self.assertEqual(code, 0)
        self.assertEqual(self.read("run/logs/0000-worker-0.log"), "fine\nfine\n")


class BadInput(support.Case):
    def test_mistakes_are_named_with_their_place(self):
        job = self.write("job.yaml", "framework: plain\ncommand: [echo]\nresources: {ndoes: 2}\n")
        code, _, err = self.dlrun(job)
        self.assertEqual(code, 65)
        self.assertRegex(err, r"dlrun: error: \S*job.yaml:3:13: unknown key 'ndoes' in 'resources'\n  hint: did you mean 'nodes'\?\n")

    def test_more_nodes_than_there_are_is_an_error_not_a_smaller_run(self):
        code, _, err = self.plain("true", "--nodes", "2")
        self.assertEqual(code, 66)
        self.assertIn("2", err)

    def test_a_plan_for_other_machines_is_not_run_here(self):
        allocation = self.write("allocation.json", '{"schema": "dlrun.allocation/1", "scheduler": "slurm", "job_id": "7", "array_index": null, '
                                '"nodes": [{"host": "c1", "slots": 1, "cpus": 1, "gpus": null}, {"host": "c2", "slots": 1, "cpus": 1, "gpus": null}], '
                                '"end_time": null, "evidence": []}')
        code, out, err = self.plain("echo ran", "--allocation", allocation)
        self.assertEqual((code, out), (69, ""))
        self.assertIn("works only inside a Slurm job (SLURM_JOB_ID is not set)", err)
        self.assertFalse(self.exists("run"))

    def test_usage_errors(self):
        for arguments, words in ((["--nodse", "2", "x.yaml"], "did you mean '--nodes'?"), (["paln", "x.yaml"], "did you mean 'plan'?"),
                                 ([], "no job file and no command"), (["--set", "epochs", "--framework", "plain", "--", "true"], "--set epochs"),
                                 (["--color", "pink", "x.yaml"], "color"),
                                 (["--nodes", "0", "--framework", "plain", "--", "true"], "--nodes")):
            code, _, err = self.dlrun(*arguments)
            self.assertEqual(code, 64, err)
            self.assertIn(words, err)

    def test_an_unknown_framework(self):
        code, _, err = self.dlrun("--framework", "plian", "--", "true")
        self.assertEqual(code, 64)  # of a flag
        self.assertIn("plain", err)


if __name__ == "__main__":
    support.main()
