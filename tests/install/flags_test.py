#!/usr/bin/python3
"""flags_test.py DLRUN: the man page of each command and both completions have every flag that `dlrun COMMAND --help`
names, and no other. Flags that commands share have one place: those of a job are in dlrun-run.1, those of all in dlrun.1."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
OF_A_JOB = ["run", "plan", "submit"]  # they take the options of a job


def help_of(dlrun, *command):
    return subprocess.run([dlrun, *command, "--help"], capture_output=True, text=True, check=True).stdout


def help_flags(dlrun, *command):
    return set(re.findall(r"(?m)^\s+(?:-\w,)?(--[a-z][a-z-]*)", help_of(dlrun, *command)))


def commands(dlrun):
    return re.findall(r"(?m)^  ([a-z][a-z-]+)  ", help_of(dlrun).split("Subcommands:")[1])


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
    names = commands(dlrun)
    has = {command: help_flags(dlrun, command) for command in names}
    has[""] = help_flags(dlrun)
    pages = documented(names)
    tables = {f"man/dlrun-{command}.1": (pages[command], has[command]) for command in names}
    every = set.union(*has.values())
    bash = re.sub(r"(?m)#.*$", "", (ROOT / "share/completions/dlrun.bash").read_text())
    zsh = (ROOT / "share/completions/_dlrun").read_text()
    tables["man/dlrun.1"] = (pages[""], has[""] | (has["hosts"] & pages[""]))  # what every command has
    tables["share/completions/dlrun.bash"] = (set(FLAG.findall(bash)), every)
    tables["share/completions/_dlrun"] = ({"--" + name for name in re.findall(r"['\"*,)]--([a-z-]+)[\[}]", zsh)}, every)
    bad = 0 if names else 1
    for command in names:
        if not page(f"dlrun-{command}.1") or not re.search(rf"\.Xr dlrun-{command} 1", page("dlrun.1")):
            print(f"dlrun {command} has no man page that dlrun.1 names")
            bad = 1
    for place, (flags, wanted) in tables.items():
        for flag in sorted(wanted - flags):
            print(f"{place} lacks {flag}")
            bad = 1
        for flag in sorted(flags - wanted):
            print(f"{place} has {flag}, which dlrun's help does not name there")
            bad = 1
    print(f"{len(every)} flags of {len(names)} commands")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
