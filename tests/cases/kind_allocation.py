"""Cases of the kinds slurm_env, pbs, sge_lsf_other and gpu, put to `dlrun allocation --json`. check() gives nothing
where the case is not one that a machine compares this way (its rule is then shown by a unit test), else a text:
empty, or what is wrong."""

import json, os, subprocess, tempfile

KINDS = ("slurm_env", "pbs", "sge_lsf_other", "gpu")


def ask(dlrun, case, folder):
    environment = {"PATH": folder}  # no scheduler's program is there
    path = os.path.join(folder, "input")
    with open(path, "w") as file:
        file.write(case["input"])
    for name, value in case.get("env", {}).items():
        environment[name] = path if value == "file" else value
    if case["kind"] == "pbs" and not case.get("env"):
        environment.update(PBS_NODEFILE=path, PBS_JOBID="1.server")
    if case["kind"] == "sge_lsf_other" and not case.get("env"):
        environment["PE_HOSTFILE"] = path
    flags = ["--allocation", path] if case["input"].startswith("{") else []
    return subprocess.run([dlrun, "allocation", "--json", *flags], env=environment, capture_output=True, text=True)


def check(case, dlrun):
    expect = case["expect"]
    known = {"hosts", "order", "per_node", "total", "devices", "error", "world_size", "warn", "launch_node", "count"}
    if case["kind"] not in KINDS or case["check"] != "exact" or not set(expect) & known or (
            not case.get("env") and case["kind"] in ("slurm_env", "gpu")):
        return None
    with tempfile.TemporaryDirectory() as folder:
        done = ask(dlrun, case, folder)
    if "error" in expect:
        return "" if done.returncode == 66 and done.stderr else f"not refused: {done.returncode} {done.stdout}"
    if done.returncode != 0:
        return done.stderr
    found = json.loads(done.stdout)
    nodes = found["nodes"]
    size = len(expect.get("hosts", [[0, 0]])[0])
    said = {
        "hosts": [[n["host"], n["slots"]] if size == 2 else [n["host"], n["cpus"], len(n["gpus"])] for n in nodes],
        "order": [n["host"] for n in nodes],
        "per_node": [n["slots"] for n in nodes],
        "total": sum(n["slots"] for n in nodes),
        "world_size": sum(n["slots"] for n in nodes),
        "devices": nodes[0]["gpus"],
        "count": len(nodes[0]["gpus"] or []),
    }
    wrong = [f"{key}: {said[key]} is not {expect[key]}" for key in said if key in expect and said[key] != expect[key]]
    if "warn" in expect and not found["warnings"]:
        wrong.append("no warning")
    if "launch_node" in expect and not any(expect["launch_node"] in line for line in found["evidence"]):
        wrong.append("the launch node is not in the evidence")
    return "; ".join(wrong)
