#!/usr/bin/env python3
"""Process groups of model parallelism: what started ranks find is what plan.json has, and what torch makes of the same mesh."""
import itertools
import json

import support

PYTHON = "/usr/bin/python3"  # Debian's, which has torch

# DeviceMesh's own definition where torch has none yet (it came with 2.0): the ranks counted into the shape, a group along each dimension.
TORCH = """
import json, os, sys, torch
import torch.distributed as dist
names = os.environ["DLRUN_MESH_NAMES"].split(",")
shape = [int(size) for size in os.environ["DLRUN_MESH_SHAPE"].split(",")]
dist.init_process_group("gloo")
rank, found = dist.get_rank(), {}
try:
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", tuple(shape), mesh_dim_names=tuple(names))
    groups = {name: mesh.get_group(name) for name in names}
except ImportError:
    ranks, groups = torch.arange(dist.get_world_size()).view(shape), {}
    for dimension, name in enumerate(names):
        for members in ranks.swapdims(-1, dimension).reshape(-1, shape[dimension]).tolist():
            group = dist.new_group(members)
            if rank in members:
                groups[name] = group
for name, group in groups.items():
    members = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size(group))]
    dist.all_gather(members, torch.tensor([rank]), group=group)
    found[name] = {"rank": dist.get_rank(group), "members": [int(member) for member in members]}
with open(f"{os.environ['DLRUN_RUN_DIR']}/mesh-{rank}.json", "w") as file:
    json.dump(found, file)
dist.destroy_process_group()
"""


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

    def test_torchs_mesh_of_that_shape_has_the_same_groups(self):
        self.write("mesh.py", TORCH)
        self.write("job.yaml", f"framework: pytorch\nresources: {{tasks-per-node: 4}}\nlaunch: {{bind: false}}\nparallel: {{tensor: 2, pipeline: 2}}\n"
                   f"command: [{PYTHON}, mesh.py]\n")
        code, _, err = self.dlrun("--quiet", "--run-dir", "run", "job.yaml")
        self.assertEqual(code, 0, err)
        plan = self.plan()
        for rank in plan["ranks"]:
            mesh = json.loads(self.read(f"run/mesh-{rank['rank']}.json"))
            self.assertEqual(set(mesh), {"pipeline", "data", "context", "tensor"})
            for kind, group in mesh.items():
                self.assertEqual(group, {"rank": rank["group_ranks"][kind], "members": members(plan, rank, kind)}, kind)

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
