#!/usr/bin/python3
"""flags_test.py DLRUN: every flag of every command is in its --help and in its man page, both completions offer it, and none
is there that dlrun does not have. `dlrun complete` prints the table of flags. Flags that commands share have one place: those of a job are
in dlrun-run.1, those of all in dlrun.1."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
OF_A_JOB = ["run", "plan", "submit", "bench"]  # they take the options of a job


def run(dlrun, *words):
    return subprocess.run([dlrun, *words], capture_output=True, text=True, check=True).stdout


def flags_of(dlrun, command):
    return {line.split("\t")[0] for line in run(dlrun, "complete", command).splitlines()}


def offered(dlrun, *shell):
    environment = {**os.environ, "PATH": f"{pathlib.Path(dlrun).resolve().parent}:{os.environ['PATH']}"}
    said = subprocess.run(shell, capture_output=True, text=True, check=True, env=environment).stdout
    return {flag for line in said.splitlines() for flag in FLAG.findall(line.split("[")[0])}


def of_bash(dlrun, command):
    return offered(dlrun, "bash", "-c", f"source {ROOT}/share/completions/dlrun.bash; _dlrun_flags {command}")


def of_zsh(dlrun, command):
    """All of the file but its last line, which completes."""
    load = f"source =(sed '$d' {ROOT}/share/completions/_dlrun)"
    return offered(dlrun, "zsh", "-f", "-c", f"{load}; typeset -a specs; _dlrun_specs {command}; print -l -- $specs")


def differences(place, flags, has):
    yield from (f"{place} lacks {flag}" for flag in sorted(has - flags))
    yield from (f"{place} has {flag}, which dlrun does not have" for flag in sorted(flags - has))


def items(text):
    return {"--" + name for name in re.findall(r"\.It Fl -([a-z-]+)", text)}


def page(name):
    path = ROOT / "man" / name
    return path.read_text() if path.exists() else ""


def section(text, title):
    found = re.search(rf"^\.S[hs] {title}\n(.*?)(?=^\.S[hs] )", text, re.S | re.M)
    return found.group(1) if found else ""


def documented(names):
    """The flags that the pages give to each of these commands; "" is dlrun without one."""
    common, of_job = section(page("dlrun.1"), "OPTIONS"), section(page("dlrun-run.1"), "Options of the job")
    shared = items(common) - {"--version"}
    out = {"": items(common)}
    for command in names:
        out[command] = items(page(f"dlrun-{command}.1")) | shared | (items(of_job) if command in OF_A_JOB else set())
    return out


def main(dlrun):
    commands = [line.split("\t")[0] for line in run(dlrun, "complete").splitlines()]
    has = {command: flags_of(dlrun, command) for command in commands}
    problems = []
    for command, flags in has.items():
        named = set(re.findall(r"(?m)^\s+(?:-\w,)?(--[a-z][a-z-]*)", run(dlrun, command, "--help")))
        problems += differences(f"dlrun {command} --help", named, flags)
        problems += differences(f"dlrun.bash, {command}", of_bash(dlrun, command), flags)
        problems += differences(f"_dlrun, {command}", of_zsh(dlrun, command), flags)
    everything = set().union(*has.values(), {"--version"})
    pages = documented(commands)
    for command, flags in has.items():
        problems += differences(f"man/dlrun-{command}.1", pages[command], flags)
        if not page(f"dlrun-{command}.1") or not re.search(rf"\.Xr dlrun-{command} 1", page("dlrun.1")):
            problems.append(f"dlrun {command} has no man page that dlrun.1 names")
    print("\n".join(problems + [f"{len(everything)} flags of {len(commands)} commands"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
