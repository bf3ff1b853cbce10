"""Cases of the kind hostfile, put to `dlrun allocation --hostfile FILE --json`."""

import json, os, re, subprocess, tempfile

KINDS = ("hostfile",)


def check(case, dlrun):
    if case["kind"] not in KINDS or case["check"] != "exact":
        return None
    expect = case["expect"]
    if not set(expect) <= {"hosts", "max", "error", "warn"}:
        return f"nothing here compares {sorted(expect)}"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "hosts")
        with open(path, "w") as file:
            file.write(case["input"])
        done = subprocess.run([dlrun, "allocation", "--hostfile", path, "--json"], env={"PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True)
    if "error" in expect:
        line = re.search(r"line (\d+)", expect["error"])
        place = f"{path}:{line.group(1)}:" if line else path
        word = re.search(r'"(.*)"', expect["error"])
        named = place in done.stderr and (not word or word.group(1) in done.stderr)
        return "" if done.returncode == 66 and named else f"not refused at {place}: {done}"
    if done.returncode != 0:
        return done.stderr
    found = json.loads(done.stdout)
    hosts = [[node["host"], node["slots"]] for node in found["nodes"]]
    wrong = [] if hosts == expect.get("hosts", hosts) else [f"{hosts} is not {expect['hosts']}"]
    for host, most in expect.get("max", {}).items():
        if not any(f"max_slots={most}: {host}" in line for line in found["evidence"]):
            wrong.append(f"max_slots={most} of {host} is not in the evidence")
    if "warn" in expect and not found["warnings"]:
        wrong.append("no warning")
    return "; ".join(wrong)
