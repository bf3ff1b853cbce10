#!/usr/bin/env python3
"""needs_of.py FOLDER: what the programs and libraries of an unpacked tarball need of a system: no symbol newer than glibc 2.31
(and, for what lies beside the programs, than the libstdc++ of g++ 9), and no library but the C library, what lies beside the
programs, and what a site decides. Prints each file that needs more, and exits with 1; else what all of them need."""
import pathlib
import re
import subprocess
import sys

LIMITS = {"GLIBC": (2, 31), "GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12)}
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
COMPILER = {"libstdc++.so.6", "libgcc_s.so.1"}  # of what lies beside the programs: oneDNN
SITE = {"libdlrun-mpi-openmpi.so": {"libmpi.so.40"}, "libdlrun-mpi-mpich.so": {"libmpich.so.12"},
        "libdlrun-mpi-mpich-abi.so": {"libmpi.so.12"}, "libdlrun-pmix.so": {"libpmix.so.2"}}


def readelf(option, file):
    return subprocess.run(["readelf", option, "--wide", file], check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(int(part) for part in version.split("."))


def newest(file):
    """{kind: the newest version of its symbols that the file needs}"""
    out = {}
    for kind, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)", readelf("--version-info", file)):
        out[kind] = max(out.get(kind, ()), number(version))
    return out


def main(folder):
    files = [path for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    beside = {path.name for path in files if path.parent.name == "beside"}
    unwind = {path.name for path in files if path.parent.name == "unwind"}
    names, highest, problems = {path.name for path in files}, {}, []
    expected = {"dlrun", "dlrun-agent", "dlrun-train", "libdlrun-ssh.so", "libdlrun-unwind.so", "libdnnl.so.2", *SITE}
    problems += [f"{name} is not there" for name in sorted(expected - names)]
    for file in files:
        allowed = SYSTEM | SITE.get(file.name, set()) | (COMPILER if file.name in beside else set())
        if file.name in beside or file.name == "dlrun-train":
            allowed |= beside
        if file.name in unwind or file.name == "libdlrun-unwind.so":
            allowed |= unwind
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", file)))
        problems += [f"{file.name} needs {library}" for library in sorted(needed - allowed)]
        problems += [f"{file.name} does not ask for {library}" for library in SITE.get(file.name, set()) - needed]
        for kind, version in newest(file).items():
            highest[kind] = max(highest.get(kind, ()), version)
            if version > LIMITS[kind]:
                problems.append(f"{file.name} needs {kind} {'.'.join(map(str, version))}")
    print("\n".join(problems) or "newest symbols: " + ", ".join(f"{k} {'.'.join(map(str, v))}" for k, v in sorted(highest.items())))
    return 1 if problems or not files else 0


sys.exit(main(*sys.argv[1:]))
