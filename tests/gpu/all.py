#!/usr/bin/env python3
"""all.py [--limit SECONDS] [NAME...]: the tests of `ctest -L gpu` on a machine that has no build, but a folder that `carry.sh DIR
BUILD tests` has made: DIR/tests/gpu/all.py runs all of them, or those named (engine, products, parallel_training...), one after the
other, the short ones first. It shows a line for each, with its seconds and where its output is, and ends with 1 if one failed. Each
test ends at --limit (default 300 s).

Fashion-MNIST is taken from DLRUN_FASHION or Debian's dataset-fashion-mnist; tests that need it fail where neither is there."""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BIN = HERE.parent.parent / "bin"
PROGRAMS = {"products": ["test-products"], "engine": ["test-cuda"]}
# The rest are trainings of several ranks, which may share one GPU; those of shards take longest.
SCRIPTS = ("pipeline_training", "parallel_training", "language_training", "science_training", "sync_training", "exchange", "callbacks",
           "transformer", "frameworks", "images_training", "gan_training", "training", "sums_training", "servers_training",
           "shards_training")
OF_VALUES = {"transformer": "transformer-values"}
ALONE = ("frameworks", "callbacks")  # they take DLRUN_BIN


def command_of(name):
    if name in PROGRAMS:
        return [str(BIN / PROGRAMS[name][0])]
    arguments = [] if name in ALONE else [str(BIN / OF_VALUES.get(name, "dlrun-train"))]
    return [sys.executable, str(HERE / f"{name}_test.py"), *arguments]


def run(name, folder, limit):
    """Its exit status, 124 if it ran into the limit."""
    log = folder / f"{name}.log"
    environment = {**os.environ, "DLRUN_BIN": str(BIN), "PYTHONUNBUFFERED": "1"}
    begin = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command_of(name), stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its ranks, too, which would disturb the next test
            code = process.wait() and 124
    said = {0: "passed", 124: f"ended after {limit:.0f} s"}.get(code, f"FAILED with {code}")
    print(f"{name:20} {said:20} {time.monotonic() - begin:6.1f} s  {log}", flush=True)
    return code


def main():
    known = [*PROGRAMS, *SCRIPTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="of one test (default 300)")
    parser.add_argument("--logs", type=pathlib.Path, metavar="DIR", help="where the output goes (default: a new folder)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(known))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"no test is called {unknown[0]}; they are {', '.join(known)}")
    folder = arguments.logs or pathlib.Path(tempfile.mkdtemp(prefix="dlrun-gpu-tests-"))
    folder.mkdir(parents=True, exist_ok=True)
    failed = [name for name in arguments.names or known if run(name, folder, arguments.limit) != 0]
    print(f"{len(failed)} failed" + (f": {' '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
