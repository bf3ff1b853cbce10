#!/usr/bin/python3
"""flags_test.py DLRUN: every flag that dlrun's help names is in man/dlrun.1 and in both completions, and none is there that
dlrun does not have."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def help_of(dlrun, *command):
    return subprocess.run([dlrun, *command, "--help"], capture_output=True, text=True, check=True).stdout


def main(dlrun):
    helps = [help_of(dlrun, *command) for command in ([], ["run"], ["plan"], ["submit"], ["chain"], ["allocation"], ["hosts"], ["frameworks"])]
    has = {flag for text in helps for flag in re.findall(r"(?m)^\s+(?:-\w,)?(--[a-z][a-z-]*)", text)}
    bash = re.sub(r"(?m)#.*$", "", (ROOT / "share/completions/dlrun.bash").read_text())
    zsh = (ROOT / "share/completions/_dlrun").read_text()
    page = (ROOT / "man/dlrun.1").read_text()
    tables = {
        "share/completions/dlrun.bash": set(FLAG.findall(bash)),
        "share/completions/_dlrun": {"--" + name for name in re.findall(r"['\"*,)]--([a-z-]+)[\[}]", zsh)},
        "man/dlrun.1": {"--" + name for name in re.findall(r"\.It Fl -([a-z-]+)", page)},
    }
    bad = 0
    for place, flags in tables.items():
        for flag in sorted(has - flags):
            print(f"{place} lacks {flag}")
            bad = 1
        for flag in sorted(flags - has):
            print(f"{place} has {flag}, which dlrun --help does not name")
            bad = 1
    print(f"{len(has)} flags")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
