#!/usr/bin/env python3
"""Inside jobs of a real Grid Engine: dlrun reads the allocation and its end, gets agents onto the nodes by qrsh -inherit, and ends
in good order when its job is deleted."""
import datetime
import json
import os
import shlex
import signal

import gridengine_support
import support
from cluster import wait_until
from support import IN_SHELL, MPI

# Says when it runs and what it was told, and takes its time to end: who is killed at once does not come to it.
TOLD = """trap 'sleep 2; echo told to end >told-$DLRUN_RANK; exit 0' TERM
touch up-$DLRUN_RANK
while :; do sleep 0.1; done
"""


class GridEngine(gridengine_support.Case):
    def test_nodes_with_unlike_slots_and_every_kind_of_rank(self):
        self.do(f"""{IN_SHELL} allocation --json >allocation.json
{IN_SHELL} plan --framework plain -- hostname >plan.txt
{IN_SHELL} --framework plain --run-dir ranks -- sh -c 'echo $(hostname) $DLRUN_RANK' >ranks.txt
{IN_SHELL} --via gridengine --framework plain --run-dir fails -- sh -c '[ $DLRUN_RANK != 2 ] || exit 7; sleep 600' 2>fails.txt; echo $? >fails.code
{IN_SHELL} --framework mpi --tasks-per-node 2 -- {shlex.quote(MPI)}openmpi >mpi.txt""", "-pe", "fill", "10", "-l", "h_rt=0:10:0")
        allocation = json.loads(self.read("allocation.json"))
        self.assertEqual((allocation["scheduler"], sorted(node["slots"] for node in allocation["nodes"])), ("gridengine", [2, 4, 4]))
        self.assertIsNone(allocation["array_index"])
        end = datetime.datetime.fromisoformat(allocation["end_time"].replace("Z", "+00:00"))
        self.assertLess(end, datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=600))
        hosts = [node["host"] for node in allocation["nodes"]]
        self.assertIn("allocation gridengine: 3 nodes", self.read("plan.txt"))
        self.assertEqual(sorted(self.read("ranks.txt").splitlines()),
                         [f"[worker {rank} {host}] {host} {rank}" for rank, host in enumerate(hosts)])
        self.assertEqual(self.read("fails.code"), "7\n")
        self.assertIn(f"worker 2 (rank 2) on {hosts[2]}: exit code 7", self.read("fails.txt"))
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6, sum 21, on this node 2\n", self.read("mpi.txt"), self.read("job.out"))

    def test_environments_that_give_no_slot_to_an_agent_or_no_tasks_at_all(self):
        run = f"{IN_SHELL} --quiet --framework plain -- hostname >hosts.txt 2>why.txt; echo $? >code"
        self.do(run, "-pe", "first", "3")
        self.assertEqual((self.read("code"), len(set(self.read("hosts.txt").splitlines()))), ("0\n", 3), self.read("why.txt"))
        self.do(run, "-pe", "loose", "2")
        self.assertEqual(self.read("code"), "69\n")
        self.assertIn("didn't accept task", self.read("why.txt"))
        self.assertIn("hint: tasks on nodes need control_slaves TRUE", self.read("why.txt"))

    def test_tasks_of_an_array_and_jobs_without_an_environment(self):
        job = self.qsub(f"{IN_SHELL} allocation --json >$SGE_TASK_ID.json", "-t", "3-5:2", "-l", "h_rt=300,s_rt=200")
        self.wait_gone(job)
        for task in (3, 5):
            allocation = json.loads(self.read(f"{task}.json"))
            self.assertEqual((allocation["job_id"], allocation["array_index"], len(allocation["nodes"])), (job, task, 1))
            self.assertIsNotNone(allocation["end_time"], allocation)
        self.do(f"{IN_SHELL} allocation --json >none.json")
        self.assertIsNone(json.loads(self.read("none.json"))["end_time"])
        self.assertIn("no limit", self.read("none.json"))

    def test_a_job_that_is_deleted_leaves_nothing_and_with_notify_ends_in_good_order(self):
        self.write("told.sh", TOLD)
        for flags, told in ((["-notify"], True), ([], False)):
            with self.subTest(flags):
                job = self.qsub(f"exec {IN_SHELL} --run-dir run{told} --framework plain -- bash told.sh", "-pe", "one", "2", *flags)
                wait_until(lambda: all(os.path.exists(f"{self.folder}/up-{rank}") for rank in (0, 1)))
                self.run_on("qdel", job)
                self.wait_gone(job)
                self.nothing_left()
                # Without a warning the first host's rank is killed; the other agent has the grace to end its own.
                for rank in (0, 1) if told else (0,):
                    self.assertEqual(os.path.exists(f"{self.folder}/told-{rank}"), told, self.read("job.out"))
                self.run_on("rm", "-f", "up-0", "up-1", "told-0", "told-1")
        record = self.record("runTrue")
        self.assertEqual((record["exit_code"], record["attempts"][0]["first_failure"]), (128 + signal.SIGUSR2, None))
        self.assertRegex(record["reason"], r"^cancelled \(SIGUSR2 from Grid Engine, job \d+\)$")


if __name__ == "__main__":
    support.main()
