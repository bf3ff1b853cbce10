#!/usr/bin/python3
"""schedulers.py: a scheduler is one folder and one row. Checks the places that would have to know more; exits 1 if one does.

1. Outside of schedulers/NAME and the table, no code names a scheduler or its variables, but for what ELSEWHERE allows and why.
2. The man pages have the names that the table has, for --scheduler and --via. (The completions ask dlrun for them.)
`schedulers.py --self-test` feeds the first rule a tree that breaks it.
"""
import pathlib
import re
import sys
import tempfile

# A scheduler's folder, and the words that only it may use in code. Torque shares PBS's variables.
WORDS = {
    "slurm": r"\bslurm\b|\bSLURMD?_\w+|\bSBATCH_\w+",
    "pbs": r"\bpbs\b|\bPBS_\w+",
    "torque": r"\btorque\b",
    "gridengine": r"\bgridengine\b|\bsge\b|\bSGE_\w+|\bPE_HOSTFILE\b",
    "lsf": r"\blsf\b|\bLS[BF]_\w+",
    "flux": r"\bflux\b|\bFLUX_\w+",
    "oar": r"\boar\b|\bOAR_\w+",
    "cobalt": r"\bcobalt\b|\bCOBALT_\w+",
}
NEIGHBOURS = {"torque": ["pbs"], "pbs": ["torque"]}
TABLE = "schedulers/registry.cpp"
# A file that may name a scheduler, and why.
ELSEWHERE = {
    "src/agent/pmi/native_service.cpp": "its hints name a launcher and a variable that help",
    "src/agent/pmi/pmix_service.cpp": "a component of Open MPI",
    "src/agent/node_local_folder.cpp": "a folder that sites, not Slurm, make and name so",
    "src/agent/accounting.cpp": "only PBS has a program that adds processes to a job",
    "src/plan/container.cpp": "what pyxis keeps of a step's variables",
    "src/plan/nested_launcher.cpp": "flux run is a launcher that a job's command may be",
    "src/run/single_start.cpp": "srun is a launcher that dlrun may be started by",
    "src/launch/ssh/launcher.cpp": "its hint names other launchers",
    "src/launch/choose_launcher.cpp": "its hint names another launcher",
    "src/cli/job_options.cpp": "a help text with examples",
    "src/cli/cmd_hosts.cpp": "an example",
    "src/cli/cmd_submit.cpp": "an example",
    "src/cli/commands.cpp": "the internal command slurm-end",
    "src/cli/cmd_slurm_end.cpp": "the internal command slurm-end",
    "schedulers/query.cpp": "a format of times that users set",
    "schedulers/allocation.cpp": "--allocation reads Flux's R as well",
}
# These may be named by nobody else at all: the proof that adding a scheduler touches its folder and the table.
STRICT = ["lsf", "gridengine", "torque", "oar", "cobalt"]


def code_without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def sources(root):
    for folder in ("src", "schedulers"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cpp", ".hpp"):
                yield path.relative_to(root).as_posix(), path.read_text()


def named_elsewhere(root):
    for path, text in sources(root):
        if path == TABLE:
            continue
        code = code_without_comments(text)
        for name, words in WORDS.items():
            homes = [f"schedulers/{home}/" for home in [name] + NEIGHBOURS.get(name, [])]
            if path.startswith(tuple(homes)) or (path in ELSEWHERE and name not in STRICT):
                continue
            for number, line in enumerate(code.splitlines(), 1):
                found = re.search(words, line)
                if found and not line.startswith("#include"):
                    yield f"{path}:{number}: '{found.group()}' belongs into schedulers/{name}/"


def rows(root):
    """Of the table, in its order: name -> the text of its row."""
    order = re.findall(r"(\w+)_scheduler\(\)", (root / TABLE).read_text().split("table{", 1)[1].split("};", 1)[0])
    text = "".join(path.read_text() for path in sorted((root / "schedulers").rglob("*.cpp")))
    out = {}
    for function in order:
        row = re.search(rf"^Scheduler {function}_scheduler\(\) \{{\n(.*?)\n\}}\n", text, re.S | re.M).group(1)
        out[re.search(r'\.name = "(\w+)"', row).group(1)] = row
    return out


def differing_lists(root):
    table = rows(root)
    launchers = {"auto", "local", "ssh", "mpiexec"} | {name for name, row in table.items() if ".launcher =" in row}
    finding = {name for name in table if name != "hostfile"}
    man = "".join(page.read_text() for page in sorted((root / "man").glob("*.1")))
    job_man = (root / "man/dlrun-job.5").read_text()
    via = [line for line in man.splitlines() if line.startswith(".It Fl -via")]
    checks = [("man, --via", launchers, line.split(" Ar ", 1)[1].replace("|", " ")) for line in via]
    if not via:
        yield "no man page has '.It Fl -via'"
    for where, expected, text in checks:
        if set(text.split()) != expected:
            yield f"{where}: has {sorted(set(text.split()))}, and the table {sorted(expected)}"
    for name in sorted(launchers):
        if not re.search(rf"\bCm .*\b{name}\b", job_man):
            yield f"man/dlrun-job.5: launch.via does not say what {name} is"
    for name in sorted(finding):
        if not re.search(rf"\bCm .*\b{name}\b", man):
            yield f"man/*.1: the sources of an allocation do not have {name}"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in {
            "schedulers/lsf/lsf.cpp": 'find("LSB_JOBID")', TABLE: "lsf_scheduler()",
            "src/a.cpp": "// lsf may be spoken of\n", "src/plan/bad.cpp": '\n#include "schedulers/lsf/lsf.hpp"\nif (name == "lsf") {}\n',
            "src/cli/job_options.cpp": 'find("LSB_HOSTS")\n',
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        found = list(named_elsewhere(root))
        expected = ["src/cli/job_options.cpp:1: 'LSB_HOSTS' belongs into schedulers/lsf/", "src/plan/bad.cpp:3: 'lsf' belongs into schedulers/lsf/"]
        return [] if found == expected else [f"self-test: {found}"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        problems = self_test()
    else:
        root = pathlib.Path(__file__).resolve().parents[2]
        problems = [*named_elsewhere(root), *differing_lists(root)]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
