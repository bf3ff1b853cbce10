#!/usr/bin/env python3
"""dlrun submit hands jobs and chains of jobs to a real Grid Engine: they run as they were asked for, a refusal names the directive
that caused it, and a training that needs several jobs finishes by itself, with the same bits."""
import json
import os
import pathlib
import signal

import gridengine_support
import support
from chain_support import COUNTER, TRAINING, Following
from cluster import wait_until
from support import DLRUN, IN_SHELL

JOB = """name: flowers
framework: plain
command: [sh, -c, 'echo "$(hostname)|$DLRUN_RANK|$*"', sh]
resources: {nodes: 3, tasks-per-node: 2, walltime: 5min, queue: all.q, extra: ["-pe two 6"]}
"""


class GridEngineSubmit(Following, gridengine_support.Case):
    def printed(self):
        return "".join(path.read_text() for path in pathlib.Path(self.folder).glob("runs/submit-*/*.o*"))

    def submit(self, *words):
        return self.run_on(DLRUN, "submit", "--scheduler", "gridengine", *words)

    def test_a_job_runs_with_its_words_as_they_were(self):
        self.write("job.yaml", JOB)
        code, out, _ = self.submit("--dry-run", "job.yaml")
        self.assertEqual(code, 0)
        for line in ("#$ -N flowers", "#$ -l h_rt=300", "#$ -q all.q", "#$ -pe two 6", "#$ -notify"):
            self.assertIn(line + "\n", out)
        code, out, err = self.submit("job.yaml", "--", "two  words", "a\n#$ -pe nine 9", "$HOME'")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"^\d+\n$")
        self.wait_gone(out.strip())
        lines = [line for line in self.printed().splitlines() if "|" in line]
        self.assertEqual(sorted(line.split("|")[1] for line in lines), [str(rank) for rank in range(6)], self.printed())
        self.assertEqual(len({line.split("|")[0].split()[-1] for line in lines}), 3)
        self.assertTrue(all(line.endswith("|two  words a") for line in lines), lines)
        self.assertEqual(self.printed().count("#$ -pe nine 9 $HOME'"), 6)

    def test_a_job_that_checks_its_nodes_is_kept_off_those_that_were_bad(self):
        self.write("job.yaml", JOB)
        for host in ("n1", "n2", "n3", "n4"):
            self.write(f"state/dlrun/bad-nodes/gridengine/{host}.json", json.dumps(
                {"schema": "dlrun.bad-node/1", "host": host, "reason": "space: full", "until": "2100-01-01T00:00:00Z" if host == "n2" else "2001-01-01T00:00:00Z"}))
        code, out, err = self.run_on(DLRUN, "submit", "--scheduler", "gridengine", "--set", "launch.check=quick", "job.yaml",
                                     env={"XDG_STATE_HOME": f"{self.folder}/state"})
        self.assertEqual(code, 0, err)
        self.wait_gone(out.strip())
        hosts = {line.split("|")[0].split()[-1] for line in self.printed().splitlines() if "|" in line}
        self.assertEqual(hosts, {"n1", "n3", "n4"}, self.printed())

    def test_refusals_name_the_directive_and_leave_nothing_behind(self):
        self.write("job.yaml", JOB)
        for value, directive in (("resources.queue=nosuch", "-q nosuch"), ("resources.account=nosuch", "-P nosuch"),
                                 ("resources.extra=[-pe nosuch 6]", "-pe nosuch 6"),
                                 ("resources.extra=[-pe two 6, -l gpu=2]", "-l gpu=2"),
                                 ("resources.extra=[-pe two 6, -frobnicate]", "-frobnicate")):
            code, out, err = self.submit("--set", value, "job.yaml")
            self.assertEqual((code, out), (69, ""), err)
            self.assertIn(f"directive: #$ {directive}\n  hint: it comes from {value.split('=')[0]}", err)
        code, _, err = self.submit("--set", "resources.extra=[-pe fill 17]", "job.yaml")
        self.assertEqual(code, 66, err)
        self.assertIn('cannot run in PE "fill" because it only offers 16 slots', err)
        self.assertFalse(list(pathlib.Path(self.folder).glob("runs/*")))

    def chain(self, text, links):
        self.write("job.yaml", text)
        code, out, err = self.submit("--json", "--chain", str(links), "job.yaml")
        self.assertEqual(code, 0, err)
        return json.loads(out)["chain"]

    def is_queued(self, name):
        return f" {name[:10]} " in self.run_on("qstat", "-u", "*")[1]

    def test_links_follow_each_other_and_a_killed_one_has_a_successor(self):
        chain = self.chain(COUNTER.format(drill="touch drilled; exec sleep 600", retries=0), 9)
        wait_until(lambda: os.path.exists(f"{self.folder}/drilled"))
        cut = self.status(chain)["links"][-1]["job_id"]
        self.run_on("qdel", cut)
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)), ("done", ["again", "interrupted", "again", "again", "done"]), status)
        self.assertEqual(len({link["job_id"] for link in status["links"]}), 5)

    def test_chain_stop_asks_the_running_job_to_end_and_cancels_the_waiting_one(self):
        # It ends only once the answer has been read: a slow qdel is not to be overtaken by the job's own end.
        until_answered = 'trap "while [ ! -e answered ]; do sleep 0.1; done; exit 143" TERM; sleep 600 & wait'
        chain = self.chain(COUNTER.format(drill=f"touch drilled; {until_answered}", retries=0), 9)
        wait_until(lambda: os.path.exists(f"{self.folder}/drilled"))
        code, _, err = self.run_on(DLRUN, "chain", "stop", chain)
        self.assertEqual(code, 0, err)
        self.assertIn("will save and end", err)
        self.write("answered", "")
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)), ("stopped", ["again", "interrupted"]), status)

    def test_a_chain_whose_job_was_killed_for_good_is_seen_to_be_over(self):
        chain = self.chain(COUNTER.format(drill="touch drilled; sleep 600", retries=0).replace('[ "$n" = 1 ]', "true"), 1)
        wait_until(lambda: os.path.exists(f"{self.folder}/drilled"))
        for node in self.cluster.nodes:
            for pid, (_, words) in self.cluster.processes(node).items():
                if "--link-of" in words:
                    os.kill(pid, signal.SIGKILL)
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)), ("stopped", ["running"]))
        self.assertIn("is gone from gridengine without a recorded end", status["reason"])

    def test_trainings_save_before_their_time_is_over_and_go_on_in_the_next_job(self):
        endless = TRAINING.replace("epochs: 4", "epochs: 1000000").replace("nodes: 1", "nodes: 2").replace("dir: ckpt", "dir: endless-ckpt")
        self.write("endless.yaml", endless.replace(", walltime: 5min", ""))
        limited = self.qsub(f"exec {IN_SHELL} --run-dir run endless.yaml", "-pe", "one", "2", "-l", "h_rt=60", name="endless")
        training = TRAINING.replace("epochs: 4", "epochs: 12")  # several commands are to come in before its end
        whole = self.wait_over(self.chain(training.replace("dir: ckpt", "dir: whole-ckpt"), 9))
        self.assertEqual(self.ends(whole), ["done"])
        chain = self.chain(training, 9)
        for link in (1, 2):  # deleted: each saves and is run again
            events = pathlib.Path(chain) / f"link-{link:04}" / "events.jsonl"
            wait_until(lambda: events.exists() and '"saved":' in events.read_text() or self.status(chain)["state"] == "done", 0.05)
            self.run_on("qdel", self.status(chain)["links"][-1]["job_id"])
        status = self.wait_over(chain)
        self.assertEqual(status["state"], "done", status)
        self.assertGreater(len(status["links"]), 1)
        last = lambda folder: sorted(path for path in pathlib.Path(self.folder, folder).rglob("*.safetensors"))[-1]
        self.assertEqual(last("ckpt").read_bytes(), last("whole-ckpt").read_bytes())
        self.wait_gone(limited)
        record = self.record()
        walltime = record["attempts"][0]["walltime"]
        self.assertEqual((record["exit_code"], walltime["saved_when_asked"]), (75, True), self.read("endless.out"))


if __name__ == "__main__":
    support.main()
