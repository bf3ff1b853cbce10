#!/usr/bin/python3
"""tidy.py [FILE...]: clang-tidy over every source file of ours, tests left out, or over these alone.

It takes the files as the asan preset compiles them, a dozen as one translation unit, since most of its time is spent on
what they include. A unit that was clean is not looked at again until its text, an included text, its flags or .clang-tidy
change: what is remembered is a hash of the preprocessed unit, in build/asan/tidy.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

FOLDERS = ("src", "schedulers", "runtime")
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/asan"


def compile_entries():
    """The compiler's commands for our sources: one for each file, or for each dozen (.../FOLDER/CMakeFiles/X.dir/Unity/...)."""
    chosen = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        home = path.relative_to(BUILD if path.is_relative_to(BUILD) else ROOT)
        if home.parts[0] in FOLDERS:
            chosen[path] = entry
    return chosen


def texts_of(path):
    """The names, from the root, of the sources that a unit is made of."""
    inside = re.findall(r'#include "(/.*)"', path.read_text()) if path.is_relative_to(BUILD) else [path]
    return [pathlib.Path(name).relative_to(ROOT).as_posix() for name in inside]


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


def check(path, entry):
    """The complaints about one unit, or '' where there are none."""
    stamp = BUILD / "tidy" / fingerprint(entry)
    if stamp.exists():
        return ""
    run = subprocess.run(["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p", str(BUILD), str(path)],
                         capture_output=True, text=True)
    if run.returncode == 0:
        stamp.touch()
        return ""
    return run.stdout + run.stderr


def main(only):
    subprocess.run(["cmake", "--preset", "asan"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    entries = {path: entry for path, entry in compile_entries().items()
               if not only or set(only) & set(texts_of(path))}
    if not entries:
        print(f"{BUILD}/compile_commands.json names no source of ours {' '.join(only)}")
        return 1
    (BUILD / "tidy").mkdir(exist_ok=True)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for complaint in pool.map(lambda item: check(*item), entries.items()):
            if complaint:
                bad += 1
                print(complaint, flush=True)
    print(f"{sum(len(texts_of(path)) for path in entries)} files in {len(entries)} units, {bad} with complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
