#!/usr/bin/env python3
"""Process groups of model parallelism: what started ranks find is what plan.json has, and what torch makes of the same mesh."""
import itertools
import json
import pathlib
import re
import subprocess

import support

PYTHON = "/usr/bin/python3"  # Debian's, which has torch

EXAMPLE = pathlib.Path(support.CLIENT).parent / "examples" / "pytorch-mesh.py"


def members(plan, rank, kind):
    """The ranks of its group by plan.json: those that differ from it in this kind alone."""
    others = ({"tensor", "pipeline", "expert", "expert-data"} if kind.startswith("expert") else {"tensor", "context", "data", "pipeline"}) - {kind}
    return [one["rank"] for one in plan["ranks"] if all(one["group_ranks"][other] == rank["group_ranks"][other] for other in others)]


class Parallel(support.Case):
    def plan(self):
        return json.loads(self.read("run/plan.json"))

    def test_ranks_find_their_groups(self):
        code, _, err = self.dlrun("--quiet", "--tasks-per-node", "8", "--no-bind", "--tensor-parallel", "2", "--pipeline-parallel", "2", "--set",
                                  "parallel.expert=2", "--run-dir", "run", "--", "sh", "-c", "env | grep ^DLRUN_ > $DLRUN_RUN_DIR/env-$DLRUN_RANK")
        self.assertEqual(code, 0, err)
        plan = self.plan()
        self.assertEqual(plan["parallel"]["sizes"], {"tensor": 2, "context": 1, "expert": 2, "data": 2, "pipeline": 2, "expert-data": 1})
        found = [dict(line.split("=", 1) for line in self.read(f"run/env-{rank}").splitlines()) for rank in range(8)]
        for rank, kind in itertools.product(plan["ranks"], plan["parallel"]["sizes"]):
            name = f"DLRUN_{kind.upper().replace('-', '_')}"
            group = members(plan, rank, kind)
            self.assertEqual(found[rank["rank"]][f"{name}_SIZE"], str(len(group)), kind)
            self.assertEqual(found[rank["rank"]][f"{name}_RANK"], str(group.index(rank["rank"])), kind)
        self.assertEqual([members(plan, plan["ranks"][5], kind) for kind in ("tensor", "expert", "data", "pipeline")], [[4, 5], [5, 7], [5, 7], [1, 5]])

    def train(self, framework, tasks, tensor):
        """{rank: {kind: members}} and the loss, which must be the same on all ranks."""
        run = f"run-{tasks}-{tensor}"
        code, out, err = self.dlrun("--quiet", "--framework", framework, "--tasks-per-node", str(tasks), "--no-bind", "--tensor-parallel", str(tensor),
                                    "--run-dir", run, "--", PYTHON, str(EXAMPLE))
        self.assertEqual(code, 0, err)
        groups = {int(rank): {kind: json.loads(ranks) for kind, ranks in re.findall(r"(\w+) (\[.*?\])", line)}
                  for rank, line in re.findall(r"rank (\d+): (.*)", out)}
        losses = re.findall(r"rank \d+ ends with loss ([\d.]+)", out)
        self.assertEqual(len(losses), tasks, out)
        self.assertEqual(len(set(losses)), 1, out)
        return run, groups, float(losses[0])

    def torchrun_works(self):
        """Debian 13 builds torch without the libuv that its torchrun asks for, whatever USE_LIBUV says."""
        store = 'import torch.distributed as d; d.TCPStore("127.0.0.1", 0, None, True, use_libuv=True)'
        err = subprocess.run([PYTHON, "-c", store], capture_output=True, text=True, check=False).stderr
        if "without libuv support" in err:
            print("torchrun is not tried: torch has no libuv")
        return "without libuv support" not in err

    def test_torchs_mesh_of_that_shape_has_the_same_groups(self):
        """By DeviceMesh, or where torch has none yet (it came with 2.2), as it is defined; and a split model that trains in them."""
        run, groups, split = self.train("pytorch", 4, 2)
        plan = json.loads(self.read(f"{run}/plan.json"))
        for rank in plan["ranks"]:
            self.assertEqual(groups[rank["rank"]], {kind: members(plan, rank, kind) for kind in ("pipeline", "data", "context", "tensor")})
        _, groups, whole = self.train("pytorch-torchrun" if self.torchrun_works() else "pytorch", 2, 1)
        self.assertEqual([groups[rank]["data"] for rank in (0, 1)], [[0, 1], [0, 1]])
        self.assertAlmostEqual(split, whole, places=4)
        self.assertLess(split, 1.0)

    def test_the_plan_shows_the_groups(self):
        code, out, err = self.dlrun("plan", "--nodes", "2", "--gpus-per-node", "4", "--tensor-parallel", "2", "--pipeline-parallel", "2", "--framework",
                                    "pytorch", "--", "python3", "train.py")
        self.assertEqual(code, 0, err)
        for line in ("parallel   tensor 2 x data 2 x pipeline 2 (the first varies fastest)", "tensor     4 groups of 2 ranks on one node:  0-1  2-3  4-5  6-7",
                     "pipeline   4 groups of 2 ranks across nodes:  0,4  1,5  2,6  3,7"):
            self.assertIn(line + "\n", out)
        self.assertRegex(out, r"(?m)^1 .* t1 d1 p1  python3 train.py$")
        code, _, err = self.dlrun("plan", "--nodes", "2", "--gpus-per-node", "4", "--tensor-parallel", "8", "--", "true")
        self.assertEqual(code, 64, err)
        self.assertIn("--tensor-parallel: a tensor group of 8 ranks is not on one node: ranks 0, ..., 3 on node0001; 4, ..., 7 on node0002", err)


if __name__ == "__main__":
    support.main()
