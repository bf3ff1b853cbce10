#!/usr/bin/python3
"""flags_test.py DLRUN: every flag of every command is in --help, in dlrun's man pages and in both completions, and none is there
that dlrun does not have. `dlrun complete` prints the table of flags."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
OTHER_PROGRAMS = {"dlrun-agent.1", "dlrun-train.1"}


def run(dlrun, *words):
    return subprocess.run([dlrun, *words], capture_output=True, text=True, check=True).stdout


def flags_of(dlrun, command):
    return {line.split("\t")[0] for line in run(dlrun, "complete", command).splitlines()}


def of_bash(command):
    script = f"source {ROOT}/share/completions/dlrun.bash; _dlrun_flags {command}"
    return set(FLAG.findall(subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout))


def differences(place, flags, has):
    yield from (f"{place} lacks {flag}" for flag in sorted(has - flags))
    yield from (f"{place} has {flag}, which dlrun does not have" for flag in sorted(flags - has))


def main(dlrun):
    commands = [line.split("\t")[0] for line in run(dlrun, "complete").splitlines()]
    has = {command: flags_of(dlrun, command) for command in commands}
    problems = []
    for command, flags in has.items():
        named = set(re.findall(r"(?m)^\s+(?:-\w,)?(--[a-z][a-z-]*)", run(dlrun, command, "--help")))
        problems += differences(f"dlrun {command} --help", named, flags)
    everything = set().union(*has.values(), {"--version"})
    zsh = (ROOT / "share/completions/_dlrun").read_text()
    pages = "".join(page.read_text() for page in (ROOT / "man").glob("dlrun*.1") if page.name not in OTHER_PROGRAMS)
    of_zsh = {"--" + name for name in re.findall(r"['\"*,)]--([a-z-]+)[\[}]", zsh)}
    problems += differences("share/completions/dlrun.bash", of_bash("none").union(*map(of_bash, commands)), everything)
    problems += differences("share/completions/_dlrun", of_zsh, everything)
    problems += differences("man/dlrun*.1", {"--" + name for name in re.findall(r"\.It Fl -([a-z-]+)", pages)}, everything)
    print("\n".join(problems + [f"{len(everything)} flags of {len(commands)} commands"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
