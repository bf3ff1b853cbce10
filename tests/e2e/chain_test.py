#!/usr/bin/env python3
"""Chains with programs on PATH in the place of a Slurm: sbatch notes the job, and the test starts its script when its turn comes.
What a link does when it is asked to stop, and the script that people have: it saves by itself and reports nothing."""
import json
import os
import subprocess

import support

ANSWERS = {
    "sbatch": 'n=$(cat last 2>/dev/null || echo 0); n=$((n + 1)); echo $n >last; echo "$*" >"job-$n"; echo $n',
    "squeue": '[ ! -e gone ] || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }; case "$*" in *%r*) cat reason 2>/dev/null || echo Dependency ;; *) cat state 2>/dev/null || echo PENDING ;; esac',
    "scancel": 'echo "$*" >>cancelled',
    "sinfo": "exit 1",
}
# As in many a tutorial: a checkpoint each epoch, and at SIGTERM the end of the epoch is the end. It knows nothing of dlrun.
SCRIPT = """import glob, os, signal, sys, time
stop = False
def on_term(*_):
    global stop
    stop = True
signal.signal(signal.SIGTERM, on_term)
first = max([int(name[5:-3]) for name in glob.glob("ckpt-*.pt")], default=0) + 1
for epoch in range(first, int(sys.argv[1]) + 1):
    time.sleep(0.3)
    print("epoch", epoch, flush=True)
    with open("ckpt.tmp", "w") as file:
        file.write(str(epoch))
    os.rename("ckpt.tmp", f"ckpt-{epoch}.pt")
    if stop:
        sys.exit(0)
"""
JOB = """name: plain-script
framework: plain
command: [python3, train.py, "{epochs}"]
resources: {{nodes: 1, tasks-per-node: 1, walltime: {walltime}}}
checkpoint: {{files: "ckpt-*.pt", lead: 3s}}
"""


class Chain(support.Case):
    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "bin"))
        for name, script in ANSWERS.items():
            os.chmod(self.write(f"bin/{name}", f"#!/bin/sh\ncd {self.folder} || exit 1\n{script}\n"), 0o755)
        self.environment["PATH"] = os.path.join(self.folder, "bin") + ":/usr/bin:/bin"
        self.write("train.py", SCRIPT)

    def submit(self, job, links):
        self.write("job.yaml", job)
        code, out, err = self.dlrun("submit", "--json", "--scheduler", "slurm", "--chain", str(links), "job.yaml")
        self.assertEqual(code, 0, err)
        return json.loads(out)["chain"]

    def start_link(self, chain, job):
        """As Slurm would, but that no SLURM_JOB_ID makes dlrun look for an allocation: its nodes are this machine."""
        environment = dict(self.environment, SLURM_JOB_ID=str(job), SLURM_NODELIST="localhost")
        script = self.read(f"{chain}/job.sh").replace(" run ", " run --scheduler local ")
        return self.start("-c", script, program="/bin/bash", env=environment)

    def status(self, chain):
        return json.loads(self.dlrun("chain", "status", chain, "--json")[1])

    def link_began(self, chain, epochs):
        support.wait_until(lambda: any(name.startswith("ckpt-") and int(name[5:-3]) >= epochs for name in os.listdir(self.folder)),
                           "the program has saved")

    def test_the_script_that_people_have_goes_through_a_chain_by_the_job_file_alone(self):
        chain = self.submit(JOB.format(epochs=40, walltime="10s"), 9)
        ends = []
        for job in range(1, 10):
            link = self.start_link(chain, job)
            out, err = link.communicate()
            status = self.status(chain)
            ends.append(status["links"][-1]["end"])
            if status["state"] == "done":
                break
            self.assertEqual((status["state"], ends[-1], link.returncode), ("queued", "again", 75), err)
            self.assertIn("stopped with a valid checkpoint (ckpt-", status["links"][-1]["reason"])
            self.assertTrue(status["links"][-1]["saved"])
        self.assertEqual((ends[0], ends[-1]), ("again", "done"), status)
        self.assertTrue(self.exists("ckpt-40.pt"))
        # As other commands see it.
        [listed] = [run for run in json.loads(self.dlrun("list", "--json")[1])["runs"] if run["kind"] == "chain"]
        self.assertEqual((listed["name"], listed["state"]), ("plain-script", "done"))
        self.assertEqual([link["end"] for link in listed["chain"]["links"]], ends)
        code, out, err = self.dlrun("status", "plain-script")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, rf"state +done(?s:.*)jobs +{len(ends)} of a maximum of 9(?s:.*)link 1 +job 1 +again ")
        code, out, err = self.dlrun("logs", "plain-script")
        self.assertEqual((code, out.splitlines()[-1]), (0, "epoch 40"), err)

    def test_chain_stop_needs_no_scheduler_that_can_signal_and_loses_no_work(self):
        chain = self.submit(JOB.format(epochs=1000, walltime="1h"), 9)
        link = self.start_link(chain, 1)
        self.link_began(chain, 2)
        seen = lambda: json.loads(self.dlrun("status", "plain-script", "--json")[1])
        support.wait_until(lambda: seen()["state"] == "running", "the head has written that it runs")
        self.assertEqual((seen()["kind"], seen()["chain"]["state"]), ("chain", "running"))
        self.assertRegex(self.dlrun("list")[1], r"(?m)^running +submit-plain-script-\S+ +\S+ +1 +1 ")
        code, _, err = self.dlrun("chain", "stop", chain)
        self.assertEqual(code, 0, err)
        self.assertIn("job 1 will save and end", err)
        link.communicate()
        status = self.status(chain)
        self.assertEqual((link.returncode, status["state"], status["links"][0]["end"]), (75, "stopped", "again"), status)
        self.assertEqual(status["reason"], "dlrun chain stop")
        self.assertEqual(set(self.read("cancelled").split()), {"2"})  # the waiting one alone

    def test_the_job_file_may_change_between_links(self):
        chain = self.submit(JOB.format(epochs=3, walltime="1h"), 9)
        self.write("job.yaml", "no job")
        link = self.start_link(chain, 1)
        _, err = link.communicate()
        self.assertEqual((link.returncode, self.status(chain)["state"]), (0, "done"), err)

    def test_links_that_were_submitted_ahead_and_are_gone_are_noticed(self):
        chain = self.submit(JOB.format(epochs=1000, walltime="1h") + "chain: {mode: presubmit}\n", 3)
        link = self.start_link(chain, 1)
        self.link_began(chain, 2)
        self.write("gone", "")
        link.terminate()
        link.communicate()
        status = self.status(chain)
        self.assertEqual(status["state"], "failed", status)
        self.assertIn("the pre-submitted jobs of this chain are gone from slurm (job 2, 3)", status["reason"])

    def test_a_job_on_hold_and_ids_of_somebody_else_are_said(self):
        chain = self.submit(JOB.format(epochs=3, walltime="1h"), 9)
        self.write("reason", "JobHeldUser\n")
        self.assertIn("pending    job 1: on hold (JobHeldUser), until it is released", self.dlrun("chain", "status", chain)[1])
        self.assertEqual(self.status(chain)["held"], "JobHeldUser")
        with open(f"{chain}/first-job", "w") as file:
            file.write("--user=root -f\n")
        for action in (["status"], ["stop"], ["stop", "--now"]):
            code, out, err = self.dlrun("chain", *action, chain)
            self.assertEqual((code, out), (65, ""), err)
            self.assertIn("'--user=root -f' is not a job id of slurm", err)
        self.assertFalse(self.exists("cancelled"))

    def test_several_chains_are_listed(self):
        first, second = (self.submit(JOB.format(epochs=3, walltime="1h").replace("plain-script", name), 9) for name in ("one", "two"))
        code, out, err = self.dlrun("chain", "status")
        self.assertEqual(code, 0, err)
        lines = out.splitlines()
        self.assertEqual(len(lines), 2, out)
        for name, chain in (("one", first), ("two", second)):
            [line] = [line for line in lines if name in line]
            self.assertTrue(line.startswith("queued"), line)
            self.assertTrue(line.endswith("runs/" + os.path.basename(chain)), line)


if __name__ == "__main__":
    support.main()
