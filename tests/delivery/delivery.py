"""Whether started ranks have what plan.json says: compares the dumps that dump.cpp writes with the plan.

KNOWN names every key of plan.json and says what covers it: a method of Delivery, or the test that does. A key that is not in
it is an error, so that no value can come into the plan without a check that it arrives."""
import json
import os
import pathlib
import resource

# What delivery.yaml's variables are, which the comparison takes from the plan itself.
ADAPTER = """name: delivery
summary: shows every kind of value that a plan has
process: per-rank
mpi: {mpi}
interfaces: [gloo]
roles:
  worker: {{default: tasks-per-node, port: 23450}}
env:
  RENDEZVOUS: "{{{{rendezvous.address}}}}"
  RANK_PORT: "{{{{rank.port}}}}"
  PLACE: "{{{{rank.index}}}} {{{{rank.local}}}} {{{{rank.node}}}} {{{{rank.role}}}} {{{{rank.task-index}}}}"
  TRICKY: "a 'b' \\"c\\" $HOME `id` \\\\ ü"
defaults: {{D_PLAIN: default, D_USER: default, D_EMPTY: default, D_PROLOG: default, D_JOB: default}}
files: {{delivery/file.txt: "{{{{world.size}}}} ranks\\n"}}
checks: [[sh, -c, "echo checked >> {{{{run.directory}}}}/checked"]]
suffix: ["--rank={{{{rank.index}}}}", "two words"]
"""
# What the user has in his environment, and what the job file sets.
USER = {"D_USER": "user", "D_EMPTY": "", "D_JOB": "user", "U_PLAIN": "a 'b' \"c\"\nd", "U_DENIED": "x", "U_JOB": "user"}
JOB_ENVIRONMENT = """  set: {D_JOB: job, U_JOB: job, J_EMPTY: "", J_TRICKY: "$HOME `id` 'single' \\"double\\""}
  deny: [U_DENIED]
"""

# The library of each protocol's MPI, for the program that joins its world.
MPI_LIBRARY = {"none": "", "pmix": "libmpi.so.40", "pmi1": "libmpich.so.12"}

# The variables by which an MPI bootstraps, which are no part of the plan; names that shells and containers set.
BOOTSTRAP = {"none": (), "pmix": ("PMIX_", "OMPI_", "OPAL_", "PRTE_", "ORTE_", "HWLOC_", "UCX_"),
          "pmi1": ("PMI_", "MPI_LOCAL", "MPIR_", "HYDI_", "UCX_", "FI_"),
          "native": ("PMI", "OMPI_", "OPAL_", "PRTE_", "ORTE_", "HYDI_", "HYDRA_", "MPI", "SLURM_", "HWLOC_", "IPATH_", "PSM2_", "TMPDIR")}
BY_SHELLS = {"_", "PWD", "OLDPWD", "SHLVL"}
OF_THE_AGENT = {"DLRUN_CONTROL", "DLRUN_CHECKPOINT_REQUEST"}
HIDDEN = "(secret, not shown)"

KNOWN = {
    "": {"schema": "unit: plan_json_test", "name": "names the run directory: e2e-output", "job_id": "by DLRUN_JOB_ID", "attempt": "by DLRUN_ATTEMPT",
         "framework": "by its variables", "process": "by the number of ranks: check_plan", "mpi": "bootstrap: check_environment; worlds: e2e-mpi",
         "working_directory": "check_place", "run_directory": "by DLRUN_RUN_DIR", "prolog": {}, "environment": "check_environment",
         "environment_rules": {}, "interface_variables": "check_interface", "limits": {}, "files": "check_files", "checks": "check_files",
         "hypothetical_nodes": "check_plan", "rendezvous_port": "check_ports", "nodes": {}, "ranks": {}, "elastic": {}, "memory": {}, "parallel": {}, "stage": {}},
    "stage": {"folder": "check_stage", "items": "check_stage"},
    "parallel": {"sizes": "check_groups", "order": "check_groups"},
    "memory": {"numa": "e2e-environment", "huge_pages": "e2e-environment"},
    "elastic": {"min_nodes": "unit: regrouping_test", "min_ranks": "unit: regrouping_test", "restarts": "unit: refills_test"},
    "prolog": {"module_paths": "check_prolog", "modules": "check_prolog", "activate": "check_prolog", "setup": "check_prolog", "needs": "e2e-environment"},
    "environment_rules": {"allow": "e2e-secrets", "deny": "check_environment", "secrets": "e2e-secrets"},
    "limits": {"start_timeout": "e2e-failure", "setup_timeout": "e2e-failure", "grace": "e2e-signals", "grace_after_failure": "e2e-failure",
               "lost_after": "cluster-failure", "no_output": "e2e-hang", "no_progress": "e2e-hang", "finalize": "e2e-hang"},
    "nodes": {"index": "check_place", "host": "check_place", "address": "e2e-nodes"},
    "ranks": {"rank": "check_place", "role": "check_place", "task_index": "check_place", "node": "check_place", "local_rank": "check_place",
              "gpus": "check_devices", "visible_gpus": "check_devices", "cpus": "check_affinity", "port": "check_ports", "service": "e2e-roles", "group_ranks": "check_groups",
              "environment": "check_environment", "defaults": "check_environment", "argv": "check_place"},
}


def unknown_keys(plan):
    """Keys of a plan that KNOWN does not have."""
    found = [key for key in plan if key not in KNOWN[""]]
    for part in ("prolog", "environment_rules", "limits"):
        found += [f"{part}.{key}" for key in plan[part] if key not in KNOWN[part]]
    found += [f"stage.{key}" for key in plan.get("stage", {}) if key not in KNOWN["stage"]]
    found += [f"parallel.{key}" for key in plan.get("parallel", {}) if key not in KNOWN["parallel"]]
    for part in ("nodes", "ranks"):
        found += [f"{part}[].{key}" for item in plan[part] for key in item if key not in KNOWN[part]]
    return sorted(set(found))


def unchecked_keys():
    """Keys whose check in KNOWN is a method that does not exist."""
    return [f"{part}.{key}" for part, keys in KNOWN.items() for key, check in keys.items()
            if isinstance(check, str) and check.startswith("check_") and not hasattr(Delivery, check.split(";")[0])]


def setup_lines():
    return ["export D_PROLOG=prolog P_SETUP='set up'", "ulimit -S -n 777", "umask 027"]


class Delivery:
    """The ranks of one attempt. `user`: the environment that dlrun was started with. `prolog`: what setup, modules and
    activation set. `by_hand`: the node script was run with bash. `container`: ranks ran inside one."""

    def __init__(self, plan_path, dumps, user, *, prolog=None, by_hand=False, container=False, run=None):
        with open(plan_path, encoding="utf-8") as file:
            self.plan = json.load(file)
        self.run = run or os.path.dirname(plan_path)
        self.user, self.prolog, self.by_hand, self.container = user, prolog or {}, by_hand, container
        self.errors = []
        self.ranks = []  # (plan, dump)
        for rank in self.plan["ranks"]:
            path = os.path.join(dumps, f"{rank['rank']}-{self.plan['attempt']}.json")
            if not os.path.exists(path):
                self.errors.append(f"rank {rank['rank']} has written no dump: it was not started, or without its place")
                continue
            with open(path, encoding="utf-8") as file:
                dump = json.load(file)
            entries = [entry.encode("latin-1").decode("utf-8", "surrogateescape") for entry in dump["environment"]]
            dump["environment"] = dict(entry.split("=", 1) for entry in entries)
            dump["argv"] = [word.encode("latin-1").decode("utf-8", "surrogateescape") for word in dump["argv"]]
            dump["cwd"] = dump["cwd"].encode("latin-1").decode("utf-8", "surrogateescape")
            self.ranks.append((rank, dump))

    def differences(self):
        self.errors += [f"plan.json has the key {key}, which no check knows" for key in unknown_keys(self.plan)]
        self.check_plan()
        self.check_files()
        for rank, dump in self.ranks:
            before = len(self.errors)
            self.check_place(rank, dump)
            self.check_groups(rank, dump)
            self.check_stage(dump)
            self.check_environment(rank, dump)
            self.check_prolog(rank, dump)
            self.check_ports(rank, dump)
            self.check_devices(rank, dump)
            self.check_interface(rank, dump)
            if not self.by_hand:
                self.check_affinity(rank, dump)
                self.check_process(rank, dump)
            self.errors[before:] = [f"rank {rank['rank']}: {error}" for error in self.errors[before:]]
        return self.errors

    def same(self, what, found, expected):
        if found != expected:
            self.errors.append(f"{what}: {found!r} is not {expected!r}")

    def check_plan(self):
        self.same("hypothetical_nodes", self.plan["hypothetical_nodes"], False)
        self.same("ranks that were started", len(self.ranks), len(self.plan["ranks"]))

    def check_stage(self, dump):
        stage = self.plan.get("stage")
        if stage is None:
            return
        self.same("DLRUN_STAGE", dump["environment"].get("DLRUN_STAGE"), stage["folder"])
        for item in stage["items"]:
            variable = "DLRUN_STAGE_" + "".join(c.upper() if c.isalnum() else "_" for c in item["name"])
            self.same(variable, dump["environment"].get(variable), f"{stage['folder']}/{item['name']}")

    def check_files(self):
        for name, content in self.plan["files"].items():
            path = pathlib.Path(self.run) / name
            self.same(f"file {name}", path.exists() and path.read_text(encoding="utf-8"), content)
        if self.plan["checks"]:
            self.same("checks ran", os.path.exists(os.path.join(self.run, "checked")), True)

    def check_place(self, rank, dump):
        env, plan = dump["environment"], self.plan
        argv = rank["argv"]
        if self.container:
            argv = argv[argv.index("--") + 1:]  # charliecloud's, behind its own words
        self.same("argv", dump["argv"], argv)
        self.same("cwd", dump["cwd"], plan["working_directory"])
        for name, value in {"RANK": rank["rank"], "LOCAL_RANK": rank["local_rank"], "NODE": rank["node"], "ROLE": rank["role"],
                            "TASK_INDEX": rank["task_index"], "SIZE": len(plan["ranks"]), "NODES": len(plan["nodes"]),
                            "LOCAL_SIZE": sum(other["node"] == rank["node"] for other in plan["ranks"]), "JOB_ID": plan["job_id"],
                            "ATTEMPT": plan["attempt"], "RUN_DIR": plan["run_directory"]}.items():
            self.same(f"DLRUN_{name}", env.get(f"DLRUN_{name}"), str(value))
        node = plan["nodes"][rank["node"]]
        self.same("index of the node", node["index"], rank["node"])
        self.same("host", dump["host"].split(".")[0], node["host"].split(".")[0])
        self.same("PLACE", env.get("PLACE"), f"{rank['rank']} {rank['local_rank']} {rank['node']} {rank['role']} {rank['task_index']}")

    def check_groups(self, rank, dump):
        """Sizes and places in groups as the plan has them, and that these are what its order makes of the rank."""
        env, parallel = dump["environment"], self.plan.get("parallel")
        if parallel is None:
            self.same("places in groups that were not asked for", rank.get("group_ranks"), None)
            return
        names = {kind: "DLRUN_" + kind.replace("-", "_").upper() for kind in parallel["sizes"]}
        mesh = [kind for kind in reversed(parallel["order"]) if kind != "expert"]
        for name, value in {**{f"{name}_SIZE": parallel["sizes"][kind] for kind, name in names.items()}, "DLRUN_MESH_NAMES": ",".join(mesh),
                            "DLRUN_MESH_SHAPE": ",".join(str(parallel["sizes"][kind]) for kind in mesh)}.items():
            self.same(name, env.get(name), str(value))
        self.same("places in groups", rank.get("group_ranks") is not None, self.plan["process"] == "per-rank")
        if "group_ranks" not in rank:
            return
        rest = rank["task_index"]
        for kind in reversed(mesh):
            self.same(f"rank in its {kind} group", rank["group_ranks"][kind], rest % parallel["sizes"][kind])
            rest //= parallel["sizes"][kind]
        for kind, name in names.items():
            self.same(f"{name}_RANK", env.get(f"{name}_RANK"), str(rank["group_ranks"][kind]))

    def expected(self, rank):
        """{name: value} of all that the rank must have, and the names that come from the plan."""
        out = {**self.user, **self.prolog}
        for name in self.plan["environment_rules"]["deny"]:
            out.pop(name, None)
        for name, value in rank["defaults"].items():
            out.setdefault(name, value)
        out.update(self.plan["environment"])
        out.update(rank["environment"])
        return out

    def check_environment(self, rank, dump):
        env = dump["environment"]
        bootstrap = BOOTSTRAP[self.plan["mpi"]]
        for name, value in self.expected(rank).items():
            loose = name in BY_SHELLS or name.startswith(bootstrap) or (self.container and name in ("PATH", "HOME", "TMPDIR"))
            if loose or (self.by_hand and name in self.plan["environment_rules"]["deny"]):
                continue
            if value == HIDDEN:
                value = self.user.get(name)
            self.same(f"variable {name}", env.get(name), value)
        if self.by_hand:
            return
        for name in self.plan["environment_rules"]["deny"]:
            self.same(f"variable {name} (denied)", env.get(name), None)
        known = set(self.expected(rank)) | OF_THE_AGENT | BY_SHELLS | set(self.plan["interface_variables"])
        more = [name for name in env if name not in known and not name.startswith(bootstrap)
                and not (self.container and name.startswith("CH_"))]
        self.same("variables that nobody has set", more, [])

    def check_prolog(self, rank, dump):
        """What setup lines leave beside variables: limits and the mask of new files. Variables: check_environment."""
        del rank
        if any("umask 027" in line for line in self.plan["prolog"]["setup"]):
            self.same("mask of new files after umask in a setup line", dump["umask"], 0o027)
        if any("ulimit -S -n 777" in line for line in self.plan["prolog"]["setup"]):
            self.same("open files after ulimit in a setup line", dump["limits"][resource.RLIMIT_NOFILE][0], 777)

    def check_ports(self, rank, dump):
        if rank["port"] is not None:
            self.same("RANK_PORT", dump["environment"].get("RANK_PORT"), str(rank["port"]))
        self.same("the rank can open its port", dump["port_is_free"], True)
        if self.plan["rendezvous_port"] is not None:
            self.same("port of RENDEZVOUS", dump["environment"].get("RENDEZVOUS", "").rpartition(":")[2], str(self.plan["rendezvous_port"]))

    def check_devices(self, rank, dump):
        if rank["gpus"] is None:
            return
        # Names for ROCm and Level Zero; for CUDA as well, unless they are AMD's: HIP reads its variable, and counts what ROCm leaves.
        names = next(name for name in ("ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK") if name in rank["environment"])
        visible = dump["environment"].get(names, "not set")
        missing = [gpu for gpu in rank["gpus"] if gpu not in visible.split(",")]
        self.same("GPUs that the rank does not see", missing, [])
        if not rank["gpus"]:
            hidden = {"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ZE_AFFINITY_MASK": "1023"}
            self.same("variables that hide GPUs", {name: dump["environment"].get(name) for name in hidden}, hidden)
        elif rank.get("visible_gpus") is not None:
            self.same(names, visible, ",".join(rank["visible_gpus"]))
            if names == "ROCR_VISIBLE_DEVICES":
                self.same("HIP_VISIBLE_DEVICES", dump["environment"].get("HIP_VISIBLE_DEVICES"),
                          ",".join(str(i) for i in range(len(rank["visible_gpus"]))))

    def check_interface(self, rank, dump):
        for name, before in self.plan["interface_variables"].items():
            value = dump["environment"].get(name, "")
            if not self.by_hand and name not in self.expected(rank) and not (value.startswith(before) and value != before):
                self.errors.append(f"{name} names no interface: {value!r}")

    def events(self):
        with open(os.path.join(self.run, "events.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def check_affinity(self, rank, dump):
        """The processors that the agent reports are the rank's; ranks of a node that have shares of it share none."""
        attempt, told = 0, []
        for event in self.events():
            attempt = event["attempt"] if event["event"] == "planned" else attempt
            if event["event"] == "started" and event["rank"] == rank["rank"] and attempt == self.plan["attempt"]:
                told = event["processors"]
        if rank["cpus"]:
            self.same("affinity", dump["affinity"], told)
            for other, its in self.ranks:
                if other["node"] == rank["node"] and other["rank"] != rank["rank"] and other["cpus"]:
                    self.same(f"processors that rank {other['rank']} has too", set(dump["affinity"]) & set(its["affinity"]), set())

    def check_process(self, rank, dump):
        """No surprises: standard streams alone, no blocked or ignored signal, a control socket that answers there."""
        del rank
        inherited = {number: target for number, target in dump["descriptors"].items() if int(number) > 2}
        if self.plan["mpi"] == "pmi1":  # the line to the PMI server
            inherited.pop(dump["environment"].get("PMI_FD"), None)
        if self.plan["mpi"] == "native":  # what its launcher hands on, a rank may need
            inherited = {number: target for number, target in inherited.items() if not target.startswith("socket:")}
        self.same("descriptors beside the standard ones", inherited, {})
        self.same("standard input", dump["descriptors"].get("0"), "/dev/null")
        self.same("signals that are blocked", dump["signals"]["SigBlk"], 0)
        self.same("signals that are ignored", dump["signals"]["SigIgn"], 0)
        env = dump["environment"]
        self.same("DLRUN_CONTROL is a socket", dump["control_is_socket"], True)
        self.same("DLRUN_CHECKPOINT_REQUEST", env.get("DLRUN_CHECKPOINT_REQUEST"), self.plan["run_directory"] + "/checkpoint-request")

    def check_limits(self, expected):
        """Limits are those of the process that started dlrun; only the soft number of open files may be higher."""
        for rank, dump in self.ranks:
            for number, (soft, hard) in enumerate(expected):
                found = dump["limits"][number]
                if number == resource.RLIMIT_NOFILE and found[0] > soft:
                    found = [soft, found[1]]
                self.same(f"rank {rank['rank']}: limit {number}", found, [soft, hard])
        return self.errors


def own_limits():
    """As dump.cpp writes them."""
    return [list(resource.getrlimit(number)) for number in range(16)]
