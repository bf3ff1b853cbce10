#!/usr/bin/python3
"""rules.py [ROOT]: checks the sources against the rules of the design; prints FILE:LINE: why, exits 1 if any is broken.

The rules are the tables below. It reads text, not C++: a rule that needs the meaning of code belongs to clang-tidy.
`rules.py --self-test` feeds every rule a file that breaks it (and one that keeps it) and fails where a rule is blind.
"""
import dataclasses
import fnmatch
import pathlib
import re
import sys
import tempfile

# Which folders the files of a folder may include from, by longest matching prefix. Everything may include itself.
INCLUDES = {
    "src/base": [],
    "src/process": ["src/base"],
    "schedulers": ["src/base", "src/process"],
    "src/health": ["src/base", "src/process", "schedulers"],
    "src/plan": ["src/base", "schedulers"],
    "src/render": ["src/base", "src/plan"],
    "src/protocol": ["src/base", "src/process", "src/plan"],
    "src/launch": ["src/base", "src/process", "schedulers", "src/plan", "src/protocol"],
    "src/agent": ["src/base", "src/process", "schedulers", "src/health", "src/plan", "src/protocol"],
    "src/record": ["src/base", "src/process", "schedulers", "src/plan"],
    "src/run": ["src/base", "src/process", "schedulers", "src/health", "src/plan", "src/render", "src/protocol", "src/launch", "src/agent", "src/record"],
    "src/chain": ["src/base", "src/process", "schedulers", "src/health", "src/plan", "src/render", "src/record", "src/run"],
    "src/report": ["src/base", "src/process", "schedulers", "src/plan", "src/record", "src/chain"],
    "src/bench/results": ["src/base"],
    "src/bench/predict": ["src/base", "src/bench/results"],
    "src/bench": ["src/base", "src/process", "schedulers", "src/plan", "src/record", "src/run", "src/chain", "src/report", "src/bench/results"],
    "src/cli": ["src", "schedulers"],
    "runtime/base": ["src/base"],
    "runtime/graph": ["src/base", "runtime/base"],
    "runtime/engine": ["src/base", "runtime/base", "runtime/graph", "runtime/optim"],
    "runtime/optim": ["src/base", "runtime/base"],
    "runtime/cpu": ["src/base", "runtime/base", "runtime/graph", "runtime/engine", "runtime/optim"],
    "runtime/cuda": ["src/base", "runtime/base", "runtime/graph", "runtime/engine", "runtime/optim"],
    "runtime/comm": ["src/base", "runtime/base", "runtime/engine"],
    "runtime/models": ["src/base", "runtime/base", "runtime/graph"],
    "runtime/data": ["src/base", "runtime/base"],
    "runtime/checkpoint": ["src/base", "runtime/base", "runtime/engine"],
    "runtime/train": ["src/base", "runtime"],
    "runtime/bench": ["src/base", "runtime"],
    "tests": ["src", "schedulers", "runtime"],
    "share": [],
}
# What a folder may never include from, whatever the table above allows.
NEVER = {"runtime/train": ["runtime/bench"]}

# A library's headers, and the only files that may include them (tests and examples are programs of their own).
CORNERS = {
    r"CLI/.*": ["src/cli/command_line.cpp"],
    r"yaml-cpp/.*": ["src/base/yaml.cpp"],
    r"nlohmann/.*": ["src/base/json.*", "src/base/json_fwd.hpp"],
    r"elfutils/.*": ["src/agent/stacks/unwind_plugin.cpp"],
    r"pmix\w*\.h|pmix/.*": ["src/agent/pmi/pmix*"],
    r"mpi\.h": ["runtime/comm/mpi/*"],
    r"nccl\.h": ["runtime/comm/nccl/*"],
    r"cuda\w*\.h|cudnn\w*\.h|cublas\w*\.h": ["runtime/cuda/*", "runtime/comm/nccl/*"],
    r"(oneapi/dnnl/)?dnnl.*": ["runtime/cpu/*"],
    r"sodium(/.*|\.h)": ["src/base/token.cpp"],
    r"spdlog/.*": ["src/base/log.cpp"],
    r"libssh/.*": ["src/launch/ssh/*"],
    r"slurm/.*": ["schedulers/slurm/api*"],
    r"zlib\.h|libdeflate\.h": ["runtime/data/*"],
    r"jpeglib\.h|jerror\.h": ["runtime/data/images/jpeg.cpp"],
    r"png\.h": ["runtime/data/images/png.cpp", "runtime/data/images/deep_png.cpp"],
    r"dlfcn\.h": ["src/base/shared_library.cpp", "src/agent/pmi/pmix_keys.cpp"],
    r"format|expected|source_location": [],  # not in both g++ 12 and clang 14
}
SHIPPED = ["src", "schedulers", "runtime"]  # where CORNERS and CALLS hold

# Words that may stand in code only in these files, and why. Comments and string literals do not count.
CALLS = {
    r"\b(secure_)?getenv\s*\(|\benviron\b": (["src/base/environment.cpp"], "only src/base/environment.cpp reads the environment"),
    r"\bstd::(cout|cerr|clog)\b|\b(f|v)?printf\s*\(|\bputs\s*\(|\bfmt::print\s*\(": (
        ["src/cli/*", "runtime/train/*", "runtime/bench/*"], "only src/cli, runtime/train and benchmark programs print for people"),
    # The PMIx plug-in asks the library that it is linked to for a function of its older versions.
    r"\bdl(open|sym)\s*\(": (["src/base/shared_library.cpp", "src/agent/pmi/pmix_keys.cpp"],
                             "only src/base/shared_library.cpp loads libraries"),
    r"\busing\s+namespace\b(?!\s+std::(chrono_|string_view_)?literals)": (
        ["*.cpp"], "a header must not open a namespace for its readers"),
}

SOURCES = ("*.cpp", "*.hpp", "*.c", "*.h", "*.hpp.in")


@dataclasses.dataclass(frozen=True)
class Broken:
    rule: str
    path: str
    line: int
    why: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.why} [{self.rule}]"


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def owner(path, table):
    found = [folder for folder in table if inside(path, folder)]
    return max(found, key=len) if found else None


def code_only(text):
    """The text with comments and string literals blanked out and every line where it was."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def includes(text):
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1), found.group(2)


def check_directions(path, text):
    home = owner(path, INCLUDES)
    for line, kind, target in includes(text):
        if kind != '"':
            continue
        there = owner(target, INCLUDES)
        if there is None:
            if not matches(path, ["tests/*", "share/*"]):
                yield Broken("direction", path, line, f'"{target}" is not written from the root of the repository')
        elif home and there != home:
            allowed = any(inside(target, folder) for folder in INCLUDES[home])
            if not allowed or any(inside(target, folder) for folder in NEVER.get(home, [])):
                yield Broken("direction", path, line, f"{home} must not include from {there}: {target}")


def check_corners(path, text):
    if not any(inside(path, folder) for folder in SHIPPED):
        return
    for line, _, target in includes(text):
        for pattern, corner in CORNERS.items():
            if re.fullmatch(pattern, target) and not matches(path, corner):
                where = ", ".join(corner) or "no file"
                yield Broken("corner", path, line, f"<{target}> belongs to {where} alone")


def check_calls(path, text):
    if not any(inside(path, folder) for folder in SHIPPED):
        return
    for number, line in enumerate(code_only(text).splitlines(), 1):
        for pattern, (allowed, why) in CALLS.items():
            if re.search(pattern, line) and not matches(path, allowed):
                yield Broken("call", path, number, why)


def check_opening(path, text):
    if path.endswith((".hpp", ".h")) and not re.match(r"//|/\*", text):
        yield Broken("opening", path, 1, "a header opens with a comment: what it does and what it refuses to do")


def check_guard(path, text):
    if path.endswith(".hpp") and "#pragma once" not in text:
        yield Broken("guard", path, 1, "a header has #pragma once")


def check_names(path, text):
    name = pathlib.PurePath(path).name
    if not inside(path, "share") and not re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9]+)+", name):
        yield Broken("name", path, 1, "a source file's name is snake_case")


RULES = [check_directions, check_corners, check_calls, check_opening, check_guard, check_names]

def sources(root):
    for folder in [*SHIPPED, "tests", "share"]:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and matches(path.name, SOURCES):
                yield path


def broken_in(root):
    files = [(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in sources(root)]
    for path, text in files:
        for rule in RULES:
            yield from rule(path, text)


# (rule that must speak or None, path, text): each row is a file of its own.
SELF_TEST = [
    ("direction", "src/base/a.cpp", '#include "src/process/run.hpp"\n'),
    ("direction", "src/plan/a.cpp", '#include "src/process/run.hpp"\n'),
    ("direction", "src/run/a.cpp", '#include "src/cli/main.hpp"\n'),
    ("direction", "runtime/graph/a.cpp", '#include "src/plan/plan.hpp"\n'),
    ("direction", "src/base/a.cpp", '#include "result.hpp"\n'),
    (None, "src/launch/a.cpp", '#include "schedulers/allocation.hpp"\n#include "src/plan/plan.hpp"\n'),
    (None, "tests/unit/a.cpp", '#include "src/cli/main.hpp"\n#include "local.hpp"\n'),
    ("corner", "src/run/a.cpp", "#include <CLI/CLI.hpp>\n"),
    ("corner", "src/cli/cmd_run.cpp", "#include <CLI/CLI.hpp>\n"),
    ("corner", "src/base/a.cpp", "#include <yaml-cpp/yaml.h>\n"),
    ("corner", "src/agent/a.cpp", "#include <spdlog/spdlog.h>\n"),
    ("corner", "src/plan/a.cpp", "#include <nlohmann/json.hpp>\n"),
    ("corner", "src/agent/a.cpp", "#include <pmix_server.h>\n"),
    ("corner", "runtime/train/a.cpp", "#include <mpi.h>\n"),
    ("corner", "runtime/train/a.cpp", "#include <oneapi/dnnl/dnnl.hpp>\n"),
    ("corner", "runtime/train/a.cpp", "#include <cuda_runtime.h>\n"),
    ("corner", "runtime/train/a.cpp", "#include <nccl.h>\n"),
    ("corner", "src/launch/a.cpp", "#include <libssh/libssh.h>\n"),
    ("corner", "schedulers/a.cpp", "#include <slurm/slurm.h>\n"),
    ("corner", "runtime/train/a.cpp", "#include <zlib.h>\n"),
    ("corner", "runtime/comm/a.cpp", "#include <dlfcn.h>\n"),
    ("corner", "src/cli/a.cpp", "#include <format>\n"),
    (None, "src/cli/command_line.cpp", "#include <CLI/CLI.hpp>\n#include <forward_list>\n#include <fmt/format.h>\n"),
    ("call", "src/run/a.cpp", 'auto home = std::getenv("HOME");\n'),
    ("call", "src/run/a.cpp", 'extern char** environ;\n'),
    ("call", "src/run/a.cpp", 'std::cerr << "no";\n'),
    ("call", "src/run/a.cpp", 'fmt::print("no");\n'),
    ("call", "runtime/data/a.cpp", 'printf("no");\n'),
    ("call", "src/agent/a.cpp", 'dlopen("x", 0);\n'),
    ("call", "src/base/a.hpp", "// a\n#pragma once\nusing namespace std;\n"),
    (None, "src/run/a.cpp", '// never getenv() or printf() here\nauto text = "std::cout printf(";\nsnprintf(b, 1, "");\n'),
    (None, "src/cli/a.cpp", 'fmt::print("yes");\n'),
    ("opening", "src/base/a.hpp", "#pragma once\n"),
    ("guard", "src/base/a.hpp", "// a\n"),
    ("name", "src/base/MyFile.cpp", "// a\n"),
]


def heard_of(files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return {broken.rule for broken in broken_in(pathlib.Path(folder))}


def self_test():
    wrong = []
    for rule, files in ((rule, {path: text}) for rule, path, text in SELF_TEST):
        heard = heard_of(files)
        if heard != ({rule} if rule else set()):
            wrong.append(f"{files}: expected {rule or 'silence'}, heard {', '.join(sorted(heard)) or 'silence'}")
    return wrong


def main(arguments):
    if arguments == ["--self-test"]:
        problems = self_test()
        summary = f"{len(SELF_TEST)} self-tests, {len(problems)} wrong"
    else:
        root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2])
        problems = list(broken_in(root))
        count = sum(1 for _ in sources(root))
        if count == 0:
            problems.append(f"{root}: no sources here")
        summary = f"{count} files, {len(problems)} broken rules"
    for problem in problems:
        print(problem)
    print(summary)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
