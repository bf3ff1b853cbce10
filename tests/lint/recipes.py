#!/usr/bin/python3
"""recipes.py [ROOT]: the recipes of share/doc/HACKING.md ("Adding ...") name the files that adding one more of a kind touches.
Each is checked against one example that exists: every file of the recipe exists and names the example, and no other source
file does. Prints what is wrong, exits 1 if anything is. `--self-test` shows that each kind of mistake is noticed."""
import pathlib
import re
import sys
import tempfile

# Recipe: (its example, what names the example in code, {other files that may name it: why}).
EXAMPLES = {
    "A scheduler": ("LSF", r"\b[lL]sf\b|lsf_|_lsf\b|LSB_|\bLSF\b", {}),
    "A launcher": ("mpiexec", r"make_mpiexec_launcher|mpiexec_command|\"mpiexec\"", {
        "frameworks/": "adapters may need the program",
        "src/plan/nested_launcher.cpp": "a command may be a launcher itself",
        "src/run/single_start.cpp": "dlrun may be started by one",
        "src/agent/pmi/native_service.cpp": "its hint names the program",
        "src/health/checks/software.cpp": "a tool that nodes may have or lack",
    }),
    "An adapter": ("Dask", r"\bdask\b|Dask", {}),
    "A fact": ("rank.cross-index", r"rank\.cross-index", {}),
    "An operator": ("GELU", r"\b[gG]elu\b|\bgelu_|_gelu\b", {
        "runtime/models/": "models are made of operators",
        "runtime/cpu/kernels/": "its loops",
        "runtime/cuda/fusion.cpp": "it joins the product before it",
        "runtime/cuda/plugin/": "products do it in their own pass",
    }),
    "An optimizer": ("LARS", r"\b[lL]ars\b|\bLars|\blars_|_lars\b", {}),
    "A data format": ("idx", r"\bidx\b(?!\.)|\bIdx|idx_", {}),
    "An allreduce algorithm": ("ring", r"ring_allreduce|\"ring\"", {
        "schedulers/slurm/launch.cpp": "a value of a variable of Slurm's PMIx",
    }),
    "A flag": ("--retries", r"\"--retries\"", {}),
    "A command": ("hosts", r"cmd_hosts|HostsCommand", {}),
    "A check": ("space", r"space_check", {}),
    "A fact of provenance": ("modules", r"\bfind_modules\b", {}),
    "A message": ("ProbeRanks", r"\bProbeRanks\b|probe-ranks|probe_ranks", {}),
}
SOURCES = ["src", "schedulers", "runtime", "frameworks", "templates"]
ENDINGS = (".cpp", ".hpp", ".c", ".h", ".cu", ".yaml", ".tmpl", "CMakeLists.txt")


def without_comments(path, text):
    if path.endswith((".yaml", ".txt", ".tmpl")):
        return re.sub(r"(?m)(^|\s)#[^\n]*", "", text)
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
    return token.sub(lambda m: m.group() if m.group().startswith('"') else " ", text)


def recipes(text):
    """{recipe: [path]}: the rows of the table below each heading of "Adding"."""
    part = re.search(r"(?ms)^## Adding\n(.*?)(?=^## |\Z)", text)
    out = {}
    for found in re.finditer(r"(?ms)^### (.*?)\n(.*?)(?=^### |\Z)", part.group(1) if part else ""):
        rows = re.findall(r"(?m)^\| (`[^|]*) \|", found.group(2))
        out[found.group(1).strip()] = [path for row in rows for path in re.findall(r"`([^`]+)`", row)]
    return out


def files_of(root, path):
    place = root / path
    return [file for file in place.rglob("*") if file.is_file()] if path.endswith("/") else [place]


def naming(root, pattern):
    """The source files whose code names the example."""
    out = set()
    for folder in SOURCES:
        for file in (root / folder).rglob("*"):
            name = file.relative_to(root).as_posix()
            if file.is_file() and name.endswith(ENDINGS):
                if re.search(pattern, without_comments(name, file.read_text(errors="replace"))):
                    out.add(name)
    return out


def listed(path, paths):
    return any(path == one or (one.endswith("/") and path.startswith(one)) for one in paths)


def problems(root, examples):
    found = recipes((root / "share/doc/HACKING.md").read_text())
    for recipe in sorted(found.keys() ^ examples.keys()):
        yield f"'{recipe}' is in {'HACKING.md' if recipe in found else 'recipes.py'} alone"
    for recipe in sorted(found.keys() & examples.keys()):
        example, pattern, elsewhere = examples[recipe]
        paths = found[recipe]
        for path in paths:
            files = files_of(root, path)
            if not files or not all(file.exists() for file in files):
                yield f"{recipe}: {path} does not exist"
            elif not any(re.search(pattern, file.read_text(errors="replace")) for file in files):
                yield f"{recipe}: {path} does not name {example}"
        for name in sorted(naming(root, pattern)):
            if not listed(name, paths) and not listed(name, elsewhere):
                yield f"{recipe}: {name} names {example} too, and HACKING.md does not list it"


SELF_TEST = [  # (what is wrong, files besides the good ones, whether it must be noticed)
    ("nothing", {}, False),
    ("a file that another one needs too", {"src/b.cpp": 'int x = Lsf::y;\n'}, True),
    ("a comment elsewhere", {"src/b.cpp": '// as Lsf does\nint x = 1;\n'}, False),
    ("a string elsewhere", {"src/b.cpp": 'auto s = "lsf";\n'}, True),
    ("a file that does not name the example", {"schedulers/registry.cpp": "int x = 1;\n"}, True),
    ("a file that is not there", {"share/doc/HACKING.md": "## Adding\n\n### A scheduler\n\n| `schedulers/lsf/` | x |\n| `no/file.cpp` | y |\n"}, True),
    ("a recipe without an example", {"share/doc/HACKING.md": "## Adding\n\n### A thing\n\n| `schedulers/lsf/` | x |\n"}, True),
]
GOOD = {
    "share/doc/HACKING.md": "## Adding\n\n### A scheduler\n\n| file | has |\n|---|---|\n| `schedulers/lsf/` | x |\n| `schedulers/registry.cpp` | y |\n\n## Style\n",
    "schedulers/lsf/lsf.cpp": "int lsf;\n",
    "schedulers/registry.cpp": '#include "schedulers/lsf/lsf.hpp"\n',
}


def self_test():
    for name, files, wrong in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**GOOD, **files}.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            if bool(list(problems(pathlib.Path(folder), {"A scheduler": EXAMPLES["A scheduler"]}))) != wrong:
                yield f"{name}: {'not noticed' if wrong else 'refused'}"


def main(arguments):
    if arguments == ["--self-test"]:
        bad = list(self_test())
    else:
        bad = list(problems(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2]), EXAMPLES))
    print("\n".join([*bad, f"{len(EXAMPLES)} recipes"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
