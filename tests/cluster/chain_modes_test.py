#!/usr/bin/env python3
"""The other modes of a chain under a real Slurm: one job that is requeued, and pre-submitted links; and what cannot be a
chain."""
import json
import os

import chain_support
import support
from chain_support import COUNTER, TRAINING
from cluster import wait_until
from support import DLRUN

REQUEUE = ("--set", "chain.mode=requeue")
PRESUBMIT = ("--set", "chain.mode=presubmit")


# Asks to be run again as often as its index says.
ELEMENT = """name: element
framework: plain
command: [sh, -c, 'd=ckpt/element-$SLURM_ARRAY_TASK_ID; mkdir -p $d; n=$(ls $d | wc -l); touch $d/$n; [ $n -ge $SLURM_ARRAY_TASK_ID ] || exit 75']
resources: {nodes: 1, tasks-per-node: 1, walltime: 2min}
checkpoint: {dir: ckpt}
"""


class ChainModes(chain_support.Case):
    def job_ids(self, status):
        return [link["job_id"] for link in status["links"]]

    def test_one_job_that_has_itself_started_again(self):
        status = self.wait_over(self.submit(COUNTER.format(drill=":", retries=0), 9, *REQUEUE))
        self.assertEqual((status["state"], self.ends(status)), ("done", ["again"] * 3 + ["done"]))
        self.assertEqual(len(set(self.job_ids(status))), 1)

    def test_a_requeued_job_uses_a_link_each_time(self):
        status = self.wait_over(self.submit(COUNTER.format(drill=":", retries=0), 2, *REQUEUE))
        self.assertEqual((status["state"], self.ends(status)), ("stopped", ["again", "again"]))
        self.assertIn("all 2 links are used", status["reason"])

    def test_a_job_that_cannot_be_requeued_ends_with_slurm_s_reason(self):
        status = self.wait_over(self.submit(COUNTER.format(drill=":", retries=0), 9, *REQUEUE,
                                            "--set", "resources.extra=[--no-requeue]"))
        self.assertEqual((status["state"], self.ends(status)), ("failed", ["again"]))
        self.assertIn("does not requeue job", status["reason"])

    def test_presubmitted_links_cancel_those_that_are_not_needed(self):
        chain = self.submit(COUNTER.format(drill=":", retries=0), 7, *PRESUBMIT)
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)), ("done", ["again"] * 3 + ["done"]))
        self.assertEqual(len(set(self.job_ids(status))), 4)
        self.assertEqual(self.status(chain)["waiting_jobs"], [])

    def test_presubmitted_links_outlive_one_that_is_killed(self):
        chain = self.submit(COUNTER.format(drill="exec sleep 600", retries=0), 7, *PRESUBMIT)
        self.wait_drill(chain)
        status = self.status(chain)
        self.assertEqual(len(status["waiting_jobs"]), 5, status)
        self.run_on("scancel", "--batch", "--signal=KILL", status["links"][-1]["job_id"])
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)[1]), ("done", "lost"), status)

    def test_chain_stop_cancels_all_that_wait(self):
        chain = self.submit(COUNTER.format(drill="exec sleep 600", retries=0), 7, *PRESUBMIT)
        self.wait_drill(chain)
        code, _, err = self.run_on(DLRUN, "chain", "stop", chain)
        self.assertEqual(code, 0, err)
        self.assertNotIn("could not be cancelled", err)
        wait_until(lambda: not self.run_on("squeue", "-h", "-n", "counter")[1], 0.2)
        self.assertEqual(self.status(chain)["state"], "stopped")

    def test_as_many_links_as_an_earlier_run_tells_and_their_time_adds_up(self):
        self.write("job.yaml", TRAINING)
        code, _, err = self.run_on(DLRUN, "--run-dir", "runs/small-1", "--set", "checkpoint.dir=measured-ckpt", "job.yaml")
        self.assertEqual(code, 0, err)
        code, out, err = self.run_on(DLRUN, "submit", "--json", "--chain", "auto", "--epochs", "8", "job.yaml")
        self.assertEqual(code, 0, err)
        answer = json.loads(out)
        self.assertEqual((answer["forecast"]["steps"], answer["forecast"]["checkpoint_rule"]), (320, "stated"))
        self.assertTrue(answer["forecast"]["measured"].endswith("runs/small-1/record.json"))
        status = self.wait_over(answer["chain"])
        self.assertEqual((status["state"], status["max_links"]), ("done", answer["forecast"]["max_links"]), status)
        time = status["time"]
        self.assertAlmostEqual(sum(time.values()) - time["total"], time["total"], places=2)
        self.assertGreater(time["useful"], 0)

    def test_each_element_of_an_array_is_a_chain_of_its_own(self):
        self.write("job.yaml", ELEMENT)
        code, out, err = self.run_on(DLRUN, "submit", "--json", "--chain", "5", "--set", "resources.extra=['--array=1-2']", "job.yaml")
        self.assertEqual(code, 0, err)
        elements = json.loads(out)["elements"]
        self.assertEqual([element["array_index"] for element in elements], [1, 2])
        for element in elements:
            index = element["array_index"]
            status = self.wait_over(element["chain"])
            self.assertEqual((status["state"], self.ends(status)), ("done", ["again"] * index + ["done"]), status)
            self.assertEqual(sorted(os.listdir(f"{self.folder}/ckpt/element-{index}")), [str(n) for n in range(index + 1)])

    def test_an_array_that_cannot_be_taken_apart_is_refused(self):
        self.write("job.yaml", ELEMENT)
        for option, why in (("--array=1-3%2", "remove the % and what follows it"), ("-a 3-1", "'3-1' is a descending range"),
                            ("--array=1-3 --mem=1G", "write the array as a separate item")):
            code, out, err = self.run_on(DLRUN, "submit", "--chain", "3", "--set", f"resources.extra=['{option}']", "job.yaml")
            self.assertEqual((code, out), (64, ""), err)
            self.assertIn(why, err)
        self.assertEqual(self.run_on("squeue", "-h", "-n", "element.1")[1], "")


if __name__ == "__main__":
    support.main()
