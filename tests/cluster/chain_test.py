#!/usr/bin/env python3
"""Chains of jobs under a real Slurm: a training that needs several jobs finishes by itself, with the same bits; and jobs that are
requeued, killed, cancelled, useless or broken leave a chain that goes on or stops with a reason."""
import json
import os
import pathlib

import chain_support
import support
from chain_support import COUNTER, TRAINING
from cluster import wait_until
from support import DLRUN

LONGER = TRAINING.replace("epochs: 4", "epochs: 12")  # several commands are to come in before its end


class Chain(chain_support.Case):
    def test_links_follow_each_other_until_the_program_is_done(self):
        chain = self.submit(COUNTER.format(drill=":", retries=0), 9)
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)), ("done", ["again"] * 3 + ["done"]))
        self.assertEqual(len({link["job_id"] for link in status["links"]}), 4)
        for link in status["links"]:
            self.assertTrue(pathlib.Path(link["run_directory"], "record.json").is_file())
        self.assertEqual(self.run_on(DLRUN, "chain", "status")[1].splitlines()[1], "state      done: done")

    def test_it_has_no_more_jobs_than_were_allowed(self):
        status = self.wait_over(self.submit(COUNTER.format(drill=":", retries=0), 2))
        self.assertEqual((status["state"], self.ends(status)), ("stopped", ["again", "again"]))
        self.assertIn("all 2 links are used", status["reason"])

    def test_a_requeued_job_resumes_and_its_successor_waits_for_it(self):
        chain = self.submit(COUNTER.format(drill="sleep 600", retries=0), 9)
        self.wait_drill(chain)
        job = self.status(chain)["links"][-1]["job_id"]
        self.assertEqual(self.run_on("scontrol", "requeue", job)[0], 0)
        status = self.wait_over(chain)
        self.assertEqual(status["state"], "done")
        self.assertEqual([link["job_id"] for link in status["links"]].count(job), 2)
        self.assertIn(self.ends(status)[1], ("lost", "interrupted"))

    def test_a_cancelled_job_and_a_killed_launcher_have_successors(self):
        # Slurm kills a cancelled job seconds after its TERM (KillWait), and a busy machine may need them all.
        for how, ends in ((["scancel"], ("interrupted", "lost")), (["scancel", "--batch", "--signal=KILL"], ("lost",))):
            with self.subTest(how):
                self.run_on("rm", "-rf", "ckpt", "drilled")
                # "exec": a shell that outlived its sleep would go on and save.
                chain = self.submit(COUNTER.format(drill="exec sleep 600", retries=0), 9)
                self.wait_drill(chain)
                cut = self.status(chain)["links"][-1]
                self.run_on(*how, cut["job_id"])
                status = self.wait_over(chain)
                self.assertEqual(status["state"], "done", status)
                link = status["links"][cut["number"] - 1]
                self.assertEqual((link["job_id"], link["saved"]), (cut["job_id"], False), status)
                self.assertIn(link["end"], ends)
                self.assertNotIn("failed", self.ends(status))
                self.assertEqual(sorted(os.listdir(f"{self.folder}/ckpt")), ["0", "1", "2", "3"])

    def test_a_node_that_dies_costs_one_link(self):
        chain = self.submit(COUNTER.format(drill="sleep 600", retries=0), 9, "--set", "resources.extra=[--no-requeue]")
        self.wait_drill(chain)
        job = self.status(chain)["links"][-1]["job_id"]
        node = self.run_on("squeue", "-h", "-o", "%B", "-j", job)[1].strip()
        self.cluster.crash(node)
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)[1]), ("done", "lost"))
        self.cluster.boot(node)
        self.cluster.wait_idle()

    def test_failures_are_tried_again_and_then_end_it(self):
        status = self.wait_over(self.submit(COUNTER.format(drill="exit 3", retries=1), 9))
        self.assertEqual((status["state"], self.ends(status)), ("done", ["again", "failed", "again", "again", "done"]))
        self.run_on("rm", "-rf", "ckpt", "drilled")
        status = self.wait_over(self.submit(COUNTER.format(drill="exit 3", retries=0), 9))
        self.assertEqual((status["state"], self.ends(status)), ("failed", ["again", "failed"]))
        self.assertIn("exit code 3", status["reason"])

    def test_a_chain_that_makes_no_progress_stops(self):
        status = self.wait_over(self.submit(COUNTER.format(drill="rm drilled; kill -9 $PPID; sleep 600", retries=9), 9))
        self.assertEqual((status["state"], len(status["links"])), ("stopped", 3), status)
        self.assertIn("two links in a row made no progress", status["reason"])

    def test_chain_stop_ends_the_running_job_and_the_waiting_one(self):
        for flags in ([], ["--now"]):
            with self.subTest(flags):
                self.run_on("rm", "-rf", "ckpt", "drilled")
                chain = self.submit(COUNTER.format(drill="sleep 600", retries=0), 9)
                self.wait_drill(chain)
                code, _, err = self.run_on(DLRUN, "chain", "stop", chain, *flags)
                self.assertEqual(code, 0, err)
                job = self.status(chain)["links"][-1]["job_id"]
                wait_until(lambda: not self.run_on("squeue", "-h", "-n", "counter")[1], 0.2)
                if self.status(chain)["state"] == "running":  # --now killed it before it could write its end
                    self.run_on(DLRUN, "chain", "stop", chain)
                status = self.status(chain)
                self.assertEqual((status["state"], status["links"][-1]["job_id"]), ("stopped", job), status)

    def test_a_training_over_several_jobs_has_the_bits_of_one(self):
        whole = self.wait_over(self.submit(LONGER, 9, "--set", "checkpoint.dir=whole-ckpt"))
        self.assertEqual(self.ends(whole), ["done"])
        chain = self.submit(LONGER, 9)
        for link in (1, 2, 3):  # as a scheduler asks a job to end: each saves and is run again
            events = pathlib.Path(chain) / f"link-{link:04}" / "events.jsonl"
            wait_until(lambda: events.exists() and '"saved":' in events.read_text()
                       or self.status(chain)["state"] == "done", 0.05)
            self.run_on("scancel", "--batch", "--signal=TERM", self.status(chain)["links"][-1]["job_id"])
        status = self.wait_over(chain)
        self.assertEqual(status["state"], "done", status)
        self.assertGreater(len(status["links"]), 1)
        self.assertEqual(json.loads(pathlib.Path(status["links"][-1]["run_directory"], "record.json").read_text())["result"]["steps"], 480)
        last = lambda folder: sorted(path for path in pathlib.Path(self.folder, folder).rglob("*.safetensors"))[-1]
        self.assertEqual(last("ckpt").read_bytes(), last("whole-ckpt").read_bytes())

    def test_links_of_a_range_take_what_they_get_and_have_the_bits_of_one_size(self):
        ranged = LONGER.replace("nodes: 1,", "nodes: 1-2,").replace("  seed: 5", "  shards: 4\n  seed: 5")
        whole = self.wait_over(self.submit(ranged, 9, "--nodes", "1", "--set", "checkpoint.dir=whole-ckpt"))
        self.assertEqual(self.ends(whole), ["done"])
        self.cluster.wait_idle()
        chain = self.submit(ranged, 9)
        events = pathlib.Path(chain, "link-0001", "events.jsonl")
        wait_until(lambda: events.exists() and '"saved":' in events.read_text(), 0.05)
        # Of the nodes that the first link gives back, another job has the first claim to one.
        root = lambda *words: self.cluster.run("head", [*words], user="root").stdout.strip()
        other = root("sbatch", "--parsable", "--nodes=1", "--exclusive", "--priority=4294967293", "--chdir=/", "--output=/dev/null",
                     "--wrap=sleep 600")
        self.run_on("scancel", "--batch", "--signal=TERM", self.status(chain)["links"][-1]["job_id"])
        status = self.wait_over(chain)
        root("scancel", other)
        self.assertEqual(self.ends(status), ["again", "done"], status)
        plans = [json.loads(pathlib.Path(link["run_directory"], "plan.json").read_text()) for link in status["links"]]
        self.assertEqual([len(plan["nodes"]) for plan in plans], [2, 1])
        last = lambda folder: sorted(path for path in pathlib.Path(self.folder, folder).rglob("*.safetensors"))[-1]
        self.assertEqual(last("ckpt").read_bytes(), last("whole-ckpt").read_bytes())


if __name__ == "__main__":
    support.main()
