"""Jobs in real queues as dlrun status, list, logs and stop see them: waiting with their place, running on another node, stopped."""
import json
import pathlib

from cluster import wait_until
from support import DLRUN

JOB = """name: {name}
framework: plain
command: [sh, -c, 'echo "rank $DLRUN_RANK is up"; trap "exit 75" TERM; while :; do sleep 0.2; done']
resources: {{nodes: 1, tasks-per-node: 2, walltime: 5min{more}}}
launch: {{bind: false}}
"""


class Seen:
    """The same for each scheduler: submit(*words) and held (flags that keep a job waiting) are theirs."""

    def see(self, run):
        code, out, err = self.run_on(DLRUN, "status", run, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def submit_job(self, name, *flags):
        self.write(f"{name}.yaml", JOB.format(name=name, more=self.more))
        code, out, err = self.submit(*flags, f"{name}.yaml")
        self.assertEqual(code, 0, err)
        return out.strip()

    def test_a_job_runs_on_another_node_is_seen_from_here_and_saves_when_it_is_stopped(self):
        job = self.submit_job("live")
        status = wait_until(lambda: (now := self.see(job))["state"] == "running" and now, 0.3)
        self.assertEqual((status["kind"], status["scheduler_job_id"], status["ranks"]), ("run", job, 2))
        wait_until(lambda: self.run_on(DLRUN, "logs", job)[1].count("is up\n") == 2, 0.3)
        self.assertIn("running", self.run_on(DLRUN, "list")[1])
        code, _, err = self.run_on(DLRUN, "stop", job)
        self.assertEqual(code, 0, err)
        self.assertIn("is asked to save and end", err)
        status = wait_until(lambda: (now := self.see(job))["state"] not in ("running", "stopping") and now, 0.3)
        self.assertEqual((status["state"], status["exit_code"]), ("stopped", 75), status)

    def test_a_job_that_waits_has_its_place_and_is_cancelled(self):
        job = self.submit_job("waits", *self.held)
        status = wait_until(lambda: (now := self.see(job))["state"] == "queued" and now["queue"]["position"] and now, 0.3)
        self.assertEqual((status["kind"], status["queue"]["position"]), ("submission", 1), status)
        self.assertTrue(status["queue"]["reason"], status)
        self.assertRegex(self.run_on(DLRUN, "list")[1], rf"queued +submit-waits-\S+ +{job} .*position 1")
        code, _, err = self.run_on(DLRUN, "stop", job)
        self.assertEqual(code, 0, err)
        self.assertIn("is cancelled", err)
        status = wait_until(lambda: (now := self.see(job))["state"] == "stopped" and now, 0.3)
        self.assertIn("was cancelled by dlrun stop before a run began", status["reason"])
        self.assertFalse(list(pathlib.Path(self.folder).glob("runs/waits-*")))
