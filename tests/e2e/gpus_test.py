#!/usr/bin/env python3
"""GPUs as an NVIDIA driver would tell them (tests/fakes/nvml.cpp): what ranks see, and who is found on which."""
import json
import os

import support

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


if __name__ == "__main__":
    support.main()
