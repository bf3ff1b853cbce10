#!/usr/bin/env python3
"""Host lists made at random, expanded by dlrun and by Slurm's own `scontrol show hostnames`, which needs no controller
for that. Only lists that both take as whole: what Slurm lets pass though it was cut is for cases.jsonl."""

import os, pathlib, random, shutil, subprocess, sys, tempfile

LISTS = 150


def number(random_, width):
    return str(random_.randrange(0, 12)).zfill(width)


def bracket(random_):
    parts = []
    for _ in range(random_.randint(1, 3)):
        width = random_.choice((1, 1, 2, 3))
        low = number(random_, width)
        high = str(int(low) + random_.randint(0, 3)).zfill(random_.choice((1, len(low))))
        parts.append(random_.choice((low, f"{low}-{high}")))
    return f"[{','.join(parts)}]"


# Text after the last bracket is left out: this Slurm refuses it, and dlrun takes it as later ones do.
def element(random_):
    text = random_.choice(("n", "gp-16-", "1.2.3.", "rack0x"))
    brackets = random_.choice((0, 1, 1, 2, 3, 4))
    for i in range(brackets):
        text += bracket(random_) + (random_.choice(("", "-ib", ".x", "n")) if i + 1 < brackets else "")
    return text if brackets else text + str(random_.randint(0, 12))


def names(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout.splitlines()


def main():
    if not shutil.which("scontrol"):
        print("no scontrol here (package slurm-client)")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        settings = pathlib.Path(folder, "slurm.conf")  # any will do, but there must be one
        settings.write_text("ClusterName=x\nSlurmctldHost=localhost\n")
        os.environ["SLURM_CONF"] = str(settings)
        return compare()


def compare():
    random_ = random.Random(20261127)
    wrong = 0
    for _ in range(LISTS):
        text = ",".join(element(random_) for _ in range(random_.randint(1, 3)))
        ours = names([os.environ["DLRUN"], "hosts", "expand", "--", text])
        theirs = names(["scontrol", "show", "hostnames", text])
        if ours != theirs:
            wrong += 1
            print(f"{text}\n  dlrun {' '.join(ours)}\n  Slurm {' '.join(theirs)}")
    print(f"{LISTS} lists, {wrong} differ")
    return 1 if wrong else 0


sys.exit(main())
