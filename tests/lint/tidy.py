#!/usr/bin/python3
"""tidy.py BUILD-FOLDER [FILE...]: clang-tidy over every source file of ours that the build compiles, tests left out.

A file that was clean is not looked at again until its text, an included text, its flags or .clang-tidy change: what is
remembered is a hash of the preprocessed file, in BUILD-FOLDER/tidy. Only clean files are remembered.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

FOLDERS = ("src", "schedulers", "runtime")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def compile_entries(build, only):
    entries = json.loads((build / "compile_commands.json").read_text())
    chosen = {}
    for entry in entries:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(ROOT) or path.is_relative_to(build):
            continue
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".cu":  # clang 14 does not know this CUDA; nvcc's own warnings are errors
            continue
        if name.split("/")[0] in FOLDERS and (not only or name in only):
            chosen[name] = entry
    return chosen


def fingerprint(entry):
    words = shlex.split(entry["command"])
    if os.path.basename(words[0]) == "ccache":
        words = words[1:]
    if "-o" in words:
        at = words.index("-o")
        del words[at:at + 2]
    text = subprocess.run([*words, "-E", "-P"], cwd=entry["directory"], capture_output=True, check=True).stdout
    settings = (ROOT / ".clang-tidy").read_bytes()
    return hashlib.sha256(settings + " ".join(words).encode() + text).hexdigest()


def check(build, name, entry):
    """The complaints about one file, or '' where there are none."""
    stamp = build / "tidy" / fingerprint(entry)
    if stamp.exists():
        return ""
    run = subprocess.run(["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p", str(build), str(ROOT / name)],
                         capture_output=True, text=True)
    if run.returncode == 0:
        stamp.touch()
        return ""
    return run.stdout + run.stderr


def main(arguments):
    build = pathlib.Path(arguments[0]).resolve()
    entries = compile_entries(build, arguments[1:])
    if not entries:
        print(f"{build}/compile_commands.json names no source of ours")
        return 1
    (build / "tidy").mkdir(exist_ok=True)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for complaint in pool.map(lambda item: check(build, *item), entries.items()):
            if complaint:
                bad += 1
                print(complaint, flush=True)
    print(f"{len(entries)} files, {bad} with complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
