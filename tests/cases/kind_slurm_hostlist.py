"""Cases of the kind slurm_hostlist, put to `dlrun hosts`. A list of names must also come back from compress."""

import subprocess

KINDS = ("slurm_hostlist",)


def hosts(dlrun, *words, text=None):
    return subprocess.run([dlrun, "hosts", *words], input=text, capture_output=True, text=True)


def check(case, dlrun):
    if case["kind"] not in KINDS or case["check"] != "exact":
        return None
    expect = case["expect"]
    known = {"hosts", "slurm_order", "unique", "count", "first", "last", "error"}
    if not set(expect) <= known:
        return f"nothing here compares {sorted(set(expect) - known)}"
    done = hosts(dlrun, "expand", "--", case["input"])
    if "error" in expect:
        said = done.stderr.splitlines()
        return "" if done.returncode == 65 and any(line.strip() == "^" for line in said) else f"not refused: {done}"
    if done.returncode != 0:
        return done.stderr
    names = done.stdout.splitlines()
    unique = hosts(dlrun, "expand", "--unique", "--", case["input"]).stdout.splitlines()
    said = {"hosts": names, "slurm_order": names, "unique": unique, "count": len(names),
            "first": names[:1] and names[0], "last": names[-1:] and names[-1]}
    wrong = [f"{key}: {said[key]} is not {expect[key]}" for key in expect if said[key] != expect[key]]
    count = hosts(dlrun, "count", "--", case["input"]).stdout.strip()
    if count != str(len(names)):
        wrong.append(f"count says {count} of {len(names)}")
    short = hosts(dlrun, "compress", "-", text="\n".join(names)).stdout.strip()
    if names and hosts(dlrun, "expand", "--", short).stdout.splitlines() != names:
        wrong.append(f"compress gives {short}, which is another list")
    return "; ".join(wrong)
