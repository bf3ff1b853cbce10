#!/usr/bin/env python3
"""Runs as others see them: list, status, logs and stop of live, finished, failed, killed and submitted runs."""
import json
import os
import pathlib
import signal
import sys

import prometheus_client.openmetrics.parser
import prometheus_client.parser

import support

# Reports steps and saves on request; rank 1 is 100 steps behind, and computes longer.
PROGRAM = """\
import os, sys, time
sys.path.insert(0, {client!r})
import dlrun_client
rank = int(os.environ.get("DLRUN_RANK", "0"))
print("hello from", rank, flush=True)
with dlrun_client.connect() as dlrun:
    for step in range(1, 100001):
        dlrun.report(step=max(step - 100 * rank, 0), steps=100000, loss=0.5, every=0,
                     compute=0.01 + 0.02 * rank, input=0.001, wait=0.039 - 0.02 * rank)
        time.sleep(0.05)
        if dlrun.checkpoint_requested():
            with dlrun.saving(step):
                open("saved", "w").write(str(step))
            dlrun.stop_if_requested()
"""

# Ends once the run has it written down that this program has these libraries and packages.
UNTIL_SEEN = """\
import os, time
def is_seen():
    with open(os.environ["DLRUN_RUN_DIR"] + "/events.jsonl") as events:
        told = ([""] + [line for line in events if '"program":{' in line])[-1]
    with open("/proc/self/maps") as maps:
        libraries = {line.split()[-1] for line in maps if ".so" in line and "/ld-" not in line}
    return '"packages":' in told and all(library in told for library in libraries)
while not is_seen():
    time.sleep(0.05)
"""

# As sbatch, squeue and scancel would speak; jobs are lines of a file: ID STATE
FAKE = """\
#!/bin/bash
here=$(dirname "$0")
case "$(basename "$0")" in
sbatch) [[ $1 == --version ]] && echo slurm 22.05 && exit; echo 17; echo 17 PENDING > "$here/jobs" ;;
scancel) : > "$here/jobs" ;;
squeue)
  [[ -s $here/jobs ]] || {{ [[ $* == *-j* ]] && echo "slurm_load_jobs error: Invalid job id specified" >&2 && exit 1; exit 0; }}
  read -r id state < "$here/jobs"
  case "$*" in
  *"%i|"*) [[ $state == PENDING ]] && printf '9|gpu|N/A|Priority\\n%s|gpu|2026-11-29T21:00:00|Resources\\n' "$id" ;;
  *%r*) echo Resources ;;
  *) echo "$state" ;;
  esac ;;
*) exit 0 ;;
esac
"""

# As the programs of PBS and LSF would: job 30 waits until it is deleted.
FAKE_PBS = """\
#!/bin/bash
here=$(dirname "$0")
case "$(basename "$0") $*" in
"qsub "*) touch "$here/jobs"; echo 30.pbsxsrv ;;
"qdel "*) rm -f "$here/jobs" ;;
"qstat -f") [[ ! -e $here/jobs ]] || cat {queue} ;;
"qstat -f "*) [[ -e $here/jobs ]] || exit 153; printf 'Job Id: 30.pbsxsrv\\n    job_state = Q\\n    Hold_Types = n\\n' ;;
esac
"""
FAKE_LSF = """\
#!/bin/bash
here=$(dirname "$0")
case "$(basename "$0") $*" in
"bsub "*) cat > "$here/jobs"; echo "Job <607844> is submitted to default queue <normal>." ;;
"bkill "*) rm -f "$here/jobs" ;;
"bjobs "*esstart_time*) echo "esstart_time: unknown field" >&2; exit 255 ;;
"bjobs "*pend_reason*) [[ -e $here/jobs ]] || exit 255; printf '7|normal|-|-\\n607844|normal|-|Not enough hosts\\n' ;;
"bjobs "*stat*) [[ -e $here/jobs ]] || {{ echo "Job <607844> is not found" >&2; exit 255; }}; echo PEND ;;
esac
"""
RECORDED = pathlib.Path(__file__).resolve().parent.parent / "recorded"


class Status(support.Case):
    def status(self, *run):
        code, out, err = self.dlrun("status", "--json", *run)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def begin(self, ranks=2, **options):
        self.write("train.py", PROGRAM.format(client=support.CLIENT))
        self.write("job.yaml", f"name: small\nframework: plain\nresources: {{tasks-per-node: {ranks}}}\n"
                   f"launch: {{bind: false, metrics-file: metrics.prom}}\ncommand: [{sys.executable}, train.py]\n")
        return self.start("job.yaml", **options)

    def running(self):
        def seen():
            code, out, _ = self.dlrun("status", "--json")
            status = json.loads(out) if code == 0 else {}
            return status if status.get("state") == "running" and status["progress"] and status["slowest_rank"] else None
        return support.wait_until(seen, "the run is seen running with its steps")

    def metrics(self, directory):
        """{(name, its own label): value} of the metrics file, as both of Prometheus' parsers read it."""
        text = pathlib.Path(directory, "metrics.prom").read_text()
        read = []
        for parser in (prometheus_client.parser, prometheus_client.openmetrics.parser):
            samples = [sample for family in parser.text_string_to_metric_families(text) for sample in family.samples]
            self.assertEqual({sample.labels.pop("run") for sample in samples}, {json.loads(pathlib.Path(directory, "status.json").read_text())["job_id"]})
            read.append({(sample.name, next(iter(sample.labels.values()), None)): sample.value for sample in samples})
        self.assertEqual(read[0], read[1])
        return read[0]

    def test_what_is_followed_ends_with_its_reader(self):
        run = self.begin()
        self.running()
        for words in ("logs -f", "status --watch"):
            with self.subTest(words):
                watcher = self.start("-c", f"{support.DLRUN} {words} | head -n 1; exit ${{PIPESTATUS[0]}}", program="bash")
                self.assertEqual(watcher.wait(), 0)
        self.assertEqual(self.dlrun("stop", "--now", "small")[0], 0)
        run.communicate()

    def test_a_fifo_in_a_run_directory_holds_nobody_up(self):
        os.makedirs(os.path.join(self.folder, "runs", "odd"))
        self.write("runs/odd/plan.json", "{}")
        os.mkfifo(os.path.join(self.folder, "runs", "odd", "record.json"))
        os.mkfifo(os.path.join(self.folder, "runs", "odd", "events.jsonl"))
        for words in (["list"], ["status", "odd"], ["report", "odd"], ["logs", "odd"]):
            with self.subTest(words):
                code, _, err = self.dlrun(*words)
                self.assertIn(code, (0, 64, 65, 74), err)

    def test_a_live_run_is_seen_followed_and_stopped_from_another_process(self):
        run = self.begin()
        status = self.running()
        self.assertEqual((status["schema"], status["kind"], status["name"]), ("dlrun.status/1", "run", "small"))
        self.assertEqual((status["nodes"], status["ranks"], status["progress"]["steps"]), (1, 2, 100000))
        support.wait_until(lambda: self.status()["slowest_rank"]["rank"] == 1, "the slower rank is seen")
        self.assertEqual(status["head"]["pid"], run.pid)
        usage = support.wait_until(lambda: self.status()["hosts"][0]["usage"], "the node tells its use")
        self.assertGreater(usage["memory_total"], 0)
        self.assertIsNone(usage["gpu"])  # not told, and not 0
        paced = support.wait_until(lambda: (lambda s: s if s["seconds_left"] else None)(self.status()), "there is a rate")
        self.assertGreater(paced["seconds_left"], 60)
        metrics = self.metrics(status["run_directory"])
        self.assertEqual(metrics["dlrun_run_stage", "running"], 1)
        self.assertEqual((metrics["dlrun_progress", "steps"], metrics["dlrun_progress", "loss"]), (100000, 0.5))
        self.assertGreater(metrics["dlrun_steps_per_second", None], 0)
        self.assertEqual(metrics["dlrun_node_memory_bytes", usage["host"]], usage["memory_total"])
        # For people, by a part of the name, and as a list.
        code, out, err = self.dlrun("status", "small")
        self.assertEqual(code, 0, err)
        for part in ("state      running", "progress   step", "slowest    rank 1", "node  "):
            self.assertIn(part, out)
        code, out, err = self.dlrun("list")
        self.assertRegex(out.splitlines()[1], r"^running +small-\d+-\d+-\w+ +- +1 +2 +\S+ +step \d+ of 100000")
        self.assertEqual(json.loads(self.dlrun("list", "--json")[1])["runs"][0]["state"], "running")
        # The rank that computes longer, as status, the output and the record have it.
        slow = support.wait_until(lambda: self.status()["stragglers"], "the straggler is seen")
        self.assertEqual([(one["rank"], one["compute"], one["wait"]) for one in slow], [(1, 0.03, 0.019)])
        self.assertRegex(self.dlrun("status", "small")[1], r"slow       rank 1 on \S+: 31 ms per step .*\(2.82 x\); computing 30 ms")
        # Its output, as it comes, until the end.
        follower = self.start("logs", "-f", "small", "--rank", "0")
        watcher = self.start("status", "--watch", "small")
        code, out, err = self.dlrun("stop", "small", "--json")
        self.assertEqual((code, json.loads(out)["stop"]), (0, "asked"), err)
        _, err = run.communicate()
        self.assertEqual(run.returncode, 75, err)
        self.assertRegex(err, r"dlrun: warning: rank 1 on \S+ is slow: 31 ms per step without the wait for others, the median rank 11 ms")
        record = json.loads(pathlib.Path(status["run_directory"], "record.json").read_text())
        self.assertEqual([one["rank"] for one in record["attempts"][0]["stragglers"]], [1])
        self.assertGreater(int(self.read("saved")), 0)
        out, err = follower.communicate()
        self.assertEqual((follower.returncode, out), (0, "hello from 0\n"), err)
        self.assertIn("stopped", err)
        out, err = watcher.communicate()
        self.assertEqual(watcher.returncode, 0, err)
        self.assertRegex(out.splitlines()[-1], "stopped")
        self.assertEqual((self.status()["state"], self.status()["exit_code"]), ("stopped", 75))
        metrics = self.metrics(status["run_directory"])
        self.assertEqual((metrics["dlrun_run_stage", "ended"], metrics["dlrun_run_exit_code", None]), (1, 75))
        code, out, err = self.dlrun("stop", "small")
        self.assertEqual(code, 0, err)
        self.assertIn("is over: stopped", err)

    def test_a_run_directory_that_was_moved_is_not_read_by_its_head(self):
        run = self.begin()
        self.running()
        directory = self.status()["run_directory"]
        os.rename(directory, directory + "-moved")
        code, _, err = self.dlrun("stop", directory + "-moved")
        self.assertEqual(code, 71, err)
        self.assertIn(f"process {run.pid} on", err)
        self.assertIn(f"hint: on {os.uname().nodename}: kill -TERM {run.pid}", err)
        os.rename(directory + "-moved", directory)
        self.assertEqual(self.dlrun("stop", "--now", "small")[0], 0)
        run.communicate()

    def test_standard_output_that_is_closed_takes_no_answer(self):
        self.assertEqual(self.dlrun("--framework", "plain", "--", "echo", "good")[0], 0)
        for words in (["list"], ["status"], ["logs"], ["--version"], ["list", "--json"]):
            with self.subTest(words):
                code, _, err = self.dlrun(*words, preexec_fn=lambda: os.close(1))
                self.assertEqual(code, 74, err)
                self.assertIn("cannot write", err)

    def test_stop_now_waits_for_nothing(self):
        run = self.start("--framework", "plain", "--", "bash", "-c", 'trap "" TERM; echo up; while :; do sleep 0.1; done')
        support.wait_until(lambda: self.dlrun("logs")[1] == "up\n", "the rank has begun")
        code, _, err = self.dlrun("stop", "bash", "--now")
        self.assertEqual(code, 0, err)
        run.communicate()
        self.assertEqual(run.returncode, 143)
        self.assertEqual(self.status()["state"], "stopped")

    def test_stop_now_gives_no_time_to_save(self):
        run = self.start("--framework", "plain", "--", "bash", "-c", "trap 'sleep 5; touch saved; exit 75' TERM; echo up; while :; do sleep 0.1; done")
        support.wait_until(lambda: self.dlrun("logs")[1] == "up\n", "the rank has begun")
        self.assertEqual(self.dlrun("stop", "bash", "--now")[0], 0)
        _, err = run.communicate()
        self.assertEqual(run.returncode, 143, err)
        self.assertFalse(self.exists("saved"))

    def test_a_run_whose_head_was_killed_is_lost_and_says_so(self):
        run = self.begin(ranks=2)
        self.running()
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        self.none_left()
        status = self.status()
        self.assertEqual(status["state"], "lost")
        self.assertIn(f"process {run.pid}", status["reason"])
        code, _, err = self.dlrun("stop", "small")
        self.assertEqual(code, 71, err)
        self.assertIn("is gone and wrote no record", err)
        code, out, _ = self.dlrun("stop", "--json", "small")
        self.assertEqual((code, json.loads(out)["schema"], json.loads(out)["error"]["exit_code"]), (71, "dlrun.error/1", 71))
        self.assertIn("hello from 0", self.dlrun("logs", "-f")[1])  # it ends: nobody writes any more

    def test_the_end_of_a_run_is_told_with_its_reason(self):
        self.assertEqual(self.plain("echo good")[0], 0)
        self.assertEqual(self.status("run")["state"], "done")
        self.assertEqual(self.dlrun("--framework", "plain", "--", "bash", "-c", "echo bad; exit 3")[0], 3)
        status = self.status()
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 3))
        self.assertIn("exit code 3", status["reason"])
        code, out, err = self.dlrun("status")
        self.assertRegex(out, r"state      failed \(exit code 3\)\nreason     worker 0 .*exit code 3")

    def test_logs_are_chosen_and_dated(self):
        self.assertEqual(self.plain('echo "I am $DLRUN_RANK"', "--tasks-per-node", "3")[0], 0)
        self.assertEqual(self.dlrun("logs", "run")[1], "[worker 0] I am 0\n[worker 1] I am 1\n[worker 2] I am 2\n")
        self.assertEqual(self.dlrun("logs", "run", "--rank", "1")[1], "I am 1\n")
        self.assertEqual(self.dlrun("logs", "run", "--rank", "0", "--since", "1h")[1], "I am 0\n")
        # Of the last seconds of a run that ended long ago nothing is new.
        for rank in range(3):
            self.write(f"run/log-times/000{rank}-worker-{rank}.log", "2026-11-29T20:00:00Z 0\n")
        self.assertEqual(self.dlrun("logs", "run", "--since", "2026-11-29T20:00:05Z", "--rank", "0")[1], "I am 0\n")
        self.assertEqual(self.dlrun("logs", "run", "--since", "1min")[:2], (0, ""))
        self.assertEqual(self.dlrun("--framework", "plain", "--run-dir", "silent", "--", "true")[0], 0)
        self.assertEqual(self.dlrun("logs", "silent", "--since", "1h"), (0, "", ""))
        line = json.loads(self.dlrun("logs", "run", "--rank", "2", "--json")[1])
        self.assertEqual((line["schema"], line["rank"], line["text"]), ("dlrun.log-line/1", 2, "I am 2"))
        for flags, expected in ((("--rank", "9"), "ranks 0 to 2"), (("--role", "workr"), "did you mean 'worker'?"),
                                (("--host", "gpu07"), "has none named 'gpu07'"), (("--since", "noon"), "is not a time")):
            code, _, err = self.dlrun("logs", "run", *flags)
            self.assertEqual(code, 64, err)
            self.assertIn(expected, err)
        os.remove(os.path.join(self.folder, "run/logs/0001-worker-1.log"))
        code, out, err = self.dlrun("logs", "run")
        self.assertEqual((code, out), (65, "[worker 0] I am 0\n[worker 2] I am 2\n"), err)
        self.assertRegex(err, r"1 of 3 log\(s\) are missing, \S*0001-worker-1.log first")

    def test_two_runs_are_compared_by_what_their_started_rank_was(self):
        self.write("train.py", "import zlib\n" + UNTIL_SEEN)
        self.environment.update({"LOADEDMODULES": "gcc/12:cuda/11.8", "HF_TOKEN": "s3cret-value"})
        for name in ("one", "two"):
            self.assertEqual(self.dlrun("--run-dir", name, "--framework", "plain", "--", sys.executable, "train.py")[0], 0)
        code, out, err = self.dlrun("diff", "one", "two")
        self.assertEqual(code, 0, out + err)
        self.assertIn("no difference", out)
        self.environment.update({"LOADEDMODULES": "gcc/12:cuda/12.1", "OMP_NUM_THREADS": "3"})
        self.write("train.py", "import zlib, bz2\n" + UNTIL_SEEN)
        run = ("--run-dir", "three", "--name", "other", "--framework", "plain", "--", "bash", "-c", f"{sys.executable} train.py; true")
        self.assertEqual(self.dlrun(*run)[0], 0)
        code, out, err = self.dlrun("diff", "one", "three", "--json")
        self.assertEqual(code, 1, out + err)
        told = {(one["section"], one["name"]): (one["a"], one["b"]) for one in json.loads(out)["differences"]}
        self.assertEqual(told["job", "name"][1], "other")
        self.assertEqual(told["modules", "cuda"], ("11.8", "12.1"))
        self.assertEqual(told["environment", "OMP_NUM_THREADS"][1], "3")
        self.assertTrue(any(section == "libraries" and "bz2" in name for section, name in told), told)
        program = json.loads(self.read("three/record.json"))["provenance"]["program"]
        self.assertEqual(program["file"], os.path.realpath(sys.executable))  # and not the shell
        self.assertTrue(any("/libc.so.6" in file for file in program["libraries"]))
        self.assertEqual(program["python"]["version"], sys.version.split()[0])
        self.assertNotIn("s3cret-value", self.read("three/record.json") + self.read("three/events.jsonl"))
        self.write("two/record.json", "{")
        code, out, err = self.dlrun("diff", "one", "two")
        self.assertIn(code, (1, 65), err)
        self.assertRegex(out, r"problem: .*two/record.json")
        self.write("one/record.json", "{")
        code, out, err = self.dlrun("diff", "one", "two")
        self.assertEqual(code, 65, out + err)
        self.assertIn("no difference in what could be read", out)
        self.assertFalse(json.loads(self.dlrun("diff", "one", "two", "--json")[1])["same"])
        self.assertEqual(self.dlrun("diff", "one", "two", "--margin", "100")[0], 64)
        self.assertEqual(self.dlrun("diff", "one")[0], 64)
        self.assertEqual(self.dlrun("diff", "one", "nowhere")[0], 64)

    def test_names_that_are_wrong_are_told_with_the_right_ones(self):
        self.assertEqual(self.dlrun("status")[0], 64)
        self.assertEqual(self.dlrun("--framework", "plain", "--", "true")[0], 0)
        code, _, err = self.dlrun("status", "ture")
        self.assertEqual(code, 64, err)
        self.assertIn("did you mean 'true'?", err)
        self.assertIn("there is no run 'ture'", err)
        self.assertEqual(self.dlrun("stop")[0], 64)
        self.assertEqual(self.dlrun("list", "-n", "0")[0], 64)
        self.assertEqual(self.dlrun("list", "nowhere")[0], 64)

    def test_a_job_in_the_queue_has_its_place_and_is_cancelled(self):
        self.fake_slurm()
        code, out, err = self.dlrun("submit", "--scheduler", "slurm", "--set", "resources.nodes=1", "--framework", "plain", "--", "true")
        self.assertEqual((code, out), (0, "17\n"), err)
        status = self.status("17")
        self.assertEqual((status["state"], status["kind"], status["scheduler_job_id"]), ("queued", "submission", "17"))
        self.assertEqual(status["queue"], {"position": 2, "start": "2026-11-29T21:00:00Z", "reason": "Resources", "held": None})
        self.assertIn("queue      position 2, expected start 2026-11-29T21:00:00Z", self.dlrun("status")[1])
        self.assertRegex(self.dlrun("list")[1], r"queued +submit-true-\S+ +17 .*position 2")
        self.assertEqual(self.dlrun("logs", "17")[0], 64)
        code, _, err = self.dlrun("stop", "17")
        self.assertEqual(code, 0, err)
        self.assertIn("job 17 of slurm is cancelled", err)
        status = self.status("17")
        self.assertEqual((status["state"], status["reason"]), ("stopped", "job 17 of slurm was cancelled by dlrun stop before a run began"))

    def fake_slurm(self):
        programs = os.path.join(self.folder, "programs")
        os.mkdir(programs)
        for name in ("sbatch", "squeue", "scancel", "sinfo"):
            path = self.write(f"programs/{name}", FAKE.format())
            os.chmod(path, 0o755)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"

    def test_a_job_that_waits_for_another_start_is_cancelled(self):
        """As after a preemption: the run is over, and its job is in the queue again."""
        self.fake_slurm()

        def ended(run, array_index, code):
            allocation = self.write("allocation.json", json.dumps(
                {"schema": "dlrun.allocation/1", "scheduler": "slurm", "job_id": "17", "array_index": array_index, "end_time": None,
                 "evidence": [], "nodes": [{"host": os.uname().nodename, "slots": 1, "cpus": 1, "gpus": None}]}))
            got, _, err = self.dlrun("--allocation", allocation, "--via", "local", "--run-dir", run, "--framework", "plain", "--", "sh", "-c",
                                     f"echo hello; exit {code}")
            self.assertEqual(got, code, err)
            self.write("programs/jobs", "17 PENDING\n")

        # Elements of an array may share their id: another one waits under it.
        for run, array_index, exits, state, told, jobs in (("stopped", None, 75, "queued", "job 17 of slurm is cancelled", ""),
                                                           ("failed", None, 3, "queued", "job 17 of slurm is cancelled", ""),
                                                           ("done", None, 0, "done", "is over: done", "17 PENDING\n"),
                                                           ("element", 2, 75, "stopped", "is over: stopped", "17 PENDING\n")):
            with self.subTest(run):
                ended(run, array_index, exits)
                status = self.status(run)
                self.assertEqual(status["state"], state)
                if state == "queued":
                    self.assertIn(f"job 17 of slurm waits for another start; the last one is {run}", status["reason"])
                    self.assertEqual((status["queue"]["position"], status["exit_code"], status["head"]), (2, None, None))
                    self.assertRegex(self.dlrun("status", run)[1], r"state      queued\nreason     job 17 .*\njob        Slurm job 17\nqueue      position 2")
                    self.assertIn("hello", self.dlrun("logs", "-f", run)[1])  # it ends: nobody writes now
                code, _, err = self.dlrun("stop", run)
                self.assertEqual(code, 0, err)
                self.assertIn(told, err)
                self.assertEqual(self.read("programs/jobs"), jobs)
        self.write("programs/jobs", "")
        self.assertIn("is over: failed", self.dlrun("stop", "failed")[2])

    def test_a_list_asks_the_queue_once_and_shows_what_waits_again(self):
        self.fake_slurm()
        for name, job in (("a", "17"), ("b", "18"), ("c", "19")):
            allocation = self.write("allocation.json", json.dumps(
                {"schema": "dlrun.allocation/1", "scheduler": "slurm", "job_id": job, "array_index": None, "end_time": None,
                 "evidence": [], "nodes": [{"host": os.uname().nodename, "slots": 1, "cpus": 1, "gpus": None}]}))
            self.assertEqual(self.dlrun("--allocation", allocation, "--via", "local", "--run-dir", f"runs/{name}", "--framework", "plain", "--", "false")[0], 1)
        self.write("programs/jobs", "17 PENDING\n")
        os.rename(f"{self.folder}/programs/squeue", f"{self.folder}/programs/squeue.real")
        os.chmod(self.write("programs/squeue", f'#!/bin/bash\necho "$*" >> {self.folder}/asked\n. {self.folder}/programs/squeue.real "$@"\n'), 0o755)
        code, out, err = self.dlrun("list")
        self.assertEqual(code, 0, err)
        self.assertEqual({line.split()[1]: line.split()[0] for line in out.splitlines()[1:]}, {"a": "queued", "b": "failed", "c": "failed"}, out)
        self.assertRegex(out, r"queued +a +17 .*job 17 of slurm waits for another start")
        self.assertEqual(sum("%i|" in line for line in self.read("asked").splitlines()), 1, self.read("asked"))

    def test_the_queues_of_pbs_and_lsf_tell_the_place_of_a_job(self):
        path = self.environment["PATH"]
        for scheduler, fake, programs, job, place in (
                ("pbs", FAKE_PBS.format(queue=RECORDED / "openpbs/qstat_f_queue.txt"), ("qsub", "qdel", "qstat", "pbsnodes"), "30.pbsxsrv",
                 {"position": 2, "start": "2026-11-27T21:13:38Z",
                  "reason": "Not Running: Insufficient amount of resource: ncpus (R: 4 A: 0 T: 4)", "held": None}),
                ("lsf", FAKE_LSF.format(), ("bsub", "bkill", "bjobs"), "607844",
                 {"position": 2, "start": None, "reason": "Not enough hosts", "held": None})):
            folder = os.path.join(self.folder, scheduler)
            os.mkdir(folder)
            for name in programs:
                os.chmod(self.write(f"{scheduler}/{name}", fake), 0o755)
            self.environment["PATH"] = f"{folder}:{path}"
            code, out, err = self.dlrun("submit", "--scheduler", scheduler, "--set", "resources.nodes=1", "--framework", "plain", "--", "true")
            self.assertEqual((code, out), (0, job + "\n"), err)
            status = self.status(job)
            self.assertEqual((status["state"], status["queue"]), ("queued", place))
            self.assertRegex(self.dlrun("status", job)[1], r"queue +position 2, ")
            self.assertEqual(self.dlrun("stop", job)[0], 0)
            self.assertEqual(self.status(job)["state"], "stopped")


if __name__ == "__main__":
    support.main()
