#!/usr/bin/env python3
"""GPUs as an NVIDIA driver would tell them (tests/fakes/nvml.cpp): what ranks see, and who is found on which."""
import json
import os
import signal

import support
from support import wait_until

FAKE = os.environ["FAKE_NVML_FOLDER"]
# A rank says what it sees, takes a device as its script would, and ends when the check has looked.
TAKE = """echo sees $CUDA_VISIBLE_DEVICES
set -- $DEVICE; [ $# = 0 ] || echo holder $1 $$ >> $FAKE_NVML
until grep -q '"event":"gpus"' run/events.jsonl; do sleep 0.05; done
"""


class Gpus(support.Case):
    def setUp(self):
        super().setUp()
        self.nvml = self.write("nvml", "gpu GPU-aaaa\ngpu GPU-bbbb\n")
        self.environment.update(LD_LIBRARY_PATH=FAKE, FAKE_NVML=self.nvml)
        self.environment.pop("CUDA_VISIBLE_DEVICES", None)

    def frameworks(self, name, text):
        os.makedirs(os.path.join(self.folder, "frameworks"), exist_ok=True)
        self.write(f"frameworks/{name}.yaml", f"name: {name}\nsummary: test\n{text}")
        return "--framework-dir", "frameworks"

    def run_take(self, script, *flags):
        return self.dlrun(*flags, "--gpus-per-node", "2", "--run-dir", "run", "--", "bash", "-c", script)

    def test_a_script_that_takes_device_local_rank_gets_its_own_gpu(self):
        flags = self.frameworks("picks", 'gpu-view: node\nenv: {LOCAL_RANK: "{{rank.local}}"}\n')
        code, out, err = self.run_take("DEVICE=$LOCAL_RANK\n" + TAKE, *flags, "--framework", "picks")
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["[worker 0] sees 0,1", "[worker 1] sees 0,1"])
        self.assertNotIn("warning", err)
        plan = json.loads(self.read("run/plan.json"))
        self.assertEqual([(rank["gpus"], rank["visible_gpus"]) for rank in plan["ranks"]], [(["0"], ["0", "1"]), (["1"], ["0", "1"])])

    def test_ranks_on_other_gpus_than_their_own_are_named(self):
        flags = self.frameworks("picks", "gpu-view: node\n")
        script = "DEVICE=0\n" + TAKE + "until grep -q 'not_its_own\":\\[\"0\"' run/events.jsonl; do sleep 0.05; done"
        code, _, err = self.run_take(script, *flags, "--framework", "picks")
        self.assertEqual(code, 0, err)
        self.assertIn("warning: rank 1 (worker 1) computes on GPU 0, and the job gives it GPU 1", err)
        self.assertNotIn("rank 0 (worker 0) computes", err)

    def test_a_role_without_gpus_sees_none_and_is_named_if_it_holds_one(self):
        flags = self.frameworks("roles", "roles:\n  worker: {default: tasks-per-node}\n  ps: {count: 1, gpus: 0}\n")
        script = 'if [ $DLRUN_ROLE = ps ]; then DEVICE=1; else DEVICE=$DLRUN_TASK_INDEX; fi\n' + TAKE + \
            "until grep -q 'not_its_own\":\\[\"1\"' run/events.jsonl; do sleep 0.05; done"
        code, out, err = self.run_take(script, *flags, "--framework", "roles")
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["[ps 0] sees", "[worker 0] sees 0", "[worker 1] sees 1"])
        self.assertIn("warning: rank 2 (ps 0) computes on GPU 1, and the job gives it no GPU", err)

    def test_threads_of_the_driver_s_library_take_no_signals(self):
        head = self.start("--gpus-per-node", "2", "--framework", "plain", "--run-dir", "run", "--", "bash", "-c", "touch up; exec sleep 1000")
        wait_until(lambda: self.exists("up"), "the rank runs")
        head.send_signal(signal.SIGTERM)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 143, err)
        self.assertIn("interrupted by SIGTERM (15)", err)
        self.assertEqual(json.loads(self.read("run/record.json"))["exit_code"], 143)

    def test_the_doctor_names_gpus_with_errors_and_what_slows_one_down(self):
        self.environment["XDG_STATE_HOME"] = os.path.join(self.folder, "state")
        self.write("nvml", "gpu GPU-aaaa\ngpu GPU-bbbb\nerrors 1 3\nthrottled 0 64\n")
        code, out, err = self.dlrun("doctor", "--json")
        self.assertEqual(code, 71, err)
        node = json.loads(out)["nodes"][0]
        self.assertEqual([finding["text"] for finding in node["findings"] if finding["check"] == "gpus"],
                         ["GPU 0: thermal slowdown by its hardware", "GPU 1: 3 uncorrected memory errors"])
        self.assertIsNone(node["values"]["gpus"]["gpus"][0]["temperature"])  # what the driver does not tell is not 0
        self.write("nvml", "gpu GPU-aaaa\n")
        code, out, err = self.dlrun("doctor")
        self.assertEqual(code, 0, out + err)

    def two_nodes(self, *words, gpus=None):
        self.write("two.json", json.dumps({"schema": "dlrun.allocation/1", "scheduler": "lsf", "nodes": [
            {"host": host, "slots": 2, "gpus": gpus} for host in ("a1", "a2")]}))
        return self.dlrun(*words, "--allocation", "two.json", "--run-dir", "run", "--framework", "plain", "--",
                          "sh", "-c", "echo sees $CUDA_VISIBLE_DEVICES, $(taskset -cp $$ | sed 's/.*: //')")

    def test_what_the_scheduler_does_not_tell_is_asked_of_the_nodes(self):
        code, out, err = self.two_nodes("--via", "local", "--gpus-per-node", "2")
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(line.split(",")[0] for line in out.splitlines()),
                         [f"[worker {rank} a{rank // 2 + 1}] sees {rank % 2}" for rank in range(4)])
        cores = sorted(os.sched_getaffinity(0))
        allocation, plan = json.loads(self.read("run/allocation.json")), json.loads(self.read("run/plan.json"))
        for node in allocation["nodes"]:
            self.assertEqual((node["gpus"], node["cpus"]), (["0", "1"], min(2, len(cores))))
        self.assertIn("queried from the nodes: GPUs of a[1-2] (a1: NVML: 2 GPUs)", allocation["evidence"])
        if len(cores) > 1:  # each rank has its part of the node's cores for itself
            self.assertEqual([rank["cpus"] for rank in plan["ranks"]], [{"share": i % 2, "of": 2} for i in range(4)])
            self.assertEqual({rank["defaults"]["OMP_NUM_THREADS"] for rank in plan["ranks"]}, {"1"})
            bound = [line.split(", ")[1] for line in sorted(out.splitlines())]
            self.assertNotEqual(bound[0], bound[1])
            self.assertEqual(bound[:2], bound[2:])  # both "nodes" are this machine

    def test_a_node_with_fewer_gpus_than_asked_is_named(self):
        code, _, err = self.two_nodes("--via", "local", "--gpus-per-node", "4")
        self.assertEqual(code, 66, err)
        self.assertIn("the job asks for 4 GPUs per node, but 2 of 2 nodes do not have them", err)
        self.assertIn("a1 has 2 GPUs: 0, 1", err)

    def test_what_is_told_is_not_asked(self):
        code, out, err = self.two_nodes("--via", "local", "--gpus-per-node", "1", gpus=["1"])
        self.assertEqual(code, 0, err)
        self.assertEqual({line.split(",")[0].partition(" sees ")[2] for line in out.splitlines()}, {"1"})

    def test_a_plan_says_what_will_be_asked(self):
        self.write("two.json", json.dumps({"schema": "dlrun.allocation/1", "scheduler": "lsf", "nodes": [{"host": "a1"}, {"host": "a2"}]}))
        words = ("--allocation", "two.json", "--gpus-per-node", "2", "--framework", "plain", "--", "true")
        code, out, err = self.dlrun("plan", *words)
        self.assertEqual(code, 0, err)
        self.assertIn("the cores of a[1-2] and the GPUs of a[1-2] are queried from the nodes at the start", err)
        code, _, err = self.dlrun("plan", "--scripts", "scripts", *words)
        self.assertEqual(code, 66, err)
        self.assertIn("their scripts cannot be written before", err)


if __name__ == "__main__":
    support.main()
