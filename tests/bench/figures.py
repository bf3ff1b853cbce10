"""Shared by the benchmarks: the command line, the table and its JSON, medians of alternating runs, a clean environment.

A benchmark compares in one call and alternates the two sides, because a machine's speed changes from minute to minute:
each round gives one ratio, and the figure is the median of the rounds. Nothing here decides success: a figure that
misses its target is printed as missed, and only a run that fails is an error.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a caller's shell may have set must not decide a figure.
TUNING = ("OMP_", "KMP_", "MKL_", "OPENBLAS_", "GOMP_", "MALLOC_", "LD_", "ATEN_", "GLOO_", "DNNL_", "ONEDNN_", "GLIBC_",
          "TORCH_", "OMPI_", "MPICH_", "UCX_", "PMIX_", "PMI_", "SLURM_", "DLRUN_")


def environment(**settings):
    """The caller's environment without anything that tunes or steers, plus `settings`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(TUNING)}
    return {**kept, **{name: str(value) for name, value in settings.items()}}


def load():
    return os.getloadavg()[0]


@dataclasses.dataclass
class Figure:
    """One row: `pairs` holds (ours, peer) of every round; peer is None where the target is absolute, or the peer has fewer rounds."""
    name: str
    unit: str
    target: str  # "ratio >= 1.5", "ours <= 30", "-": none
    pairs: list = dataclasses.field(default_factory=list)
    loads: list = dataclasses.field(default_factory=list)

    def add(self, ours, peer=None):
        self.pairs.append((ours, peer))
        self.loads.append(load())

    @property
    def ours(self):
        return statistics.median(ours for ours, _ in self.pairs)

    @property
    def peer(self):
        peers = [peer for _, peer in self.pairs if peer is not None]
        return statistics.median(peers) if peers else None

    @property
    def ratio(self):
        ratios = [ours / peer for ours, peer in self.pairs if peer]
        return statistics.median(ratios) if ratios else None

    @property
    def met(self):
        if self.target == "-":
            return None
        what, sign, bound = self.target.split()
        value = {"ratio": self.ratio, "ours": self.ours}[what]
        return value >= float(bound) if sign == ">=" else value <= float(bound)

    def as_json(self):
        return {"name": self.name, "ours": self.ours, "peer": self.peer, "ratio": self.ratio, "target": self.target,
                "unit": self.unit, "met": self.met, "rounds": self.pairs, "load1": [round(x, 2) for x in self.loads]}


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


VERDICTS = {True: "met", False: "MISSED", None: ""}


def print_table(figures):
    head = ("figure", "peer", "ours", "unit", "ratio", "target", "", "load1")
    rows = [(f.name, number(f.peer), number(f.ours), f.unit, number(f.ratio), f.target, VERDICTS[f.met],
             f"{min(f.loads):.1f}-{max(f.loads):.1f}") for f in figures]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def last_json(words):
    """What a program says in its last line, which is JSON."""
    text = subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(text.splitlines()[-1])


def say(text):
    print(f"[load {load():.1f}] {text}", file=sys.stderr, flush=True)


def fail(text):
    raise SystemExit(f"{pathlib.Path(sys.argv[0]).name}: error: {text}")


class Bench:
    """What every benchmark has: --json, --rounds, --dlrun, and a scratch folder that goes away."""

    def __init__(self, text, rounds, options=()):
        parser = argparse.ArgumentParser(description=text)
        parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
        parser.add_argument("--rounds", type=int, default=rounds, help=f"alternating rounds (default {rounds})")
        parser.add_argument("--dlrun", default=str(ROOT / "build/release/bin/dlrun"), help="the program to measure")
        for flag, settings in options:
            parser.add_argument(flag, **settings)
        self.arguments = parser.parse_args()
        self.dlrun = str(pathlib.Path(self.arguments.dlrun).resolve())
        if not os.access(self.dlrun, os.X_OK):
            fail(f"there is no program {self.dlrun}\n  hint: share/quickstart.sh builds it, or name one with --dlrun")
        if self.arguments.rounds < 1:
            fail(f"--rounds {self.arguments.rounds}: at least one round")
        self.figures = []

    def figure(self, name, unit, target):
        self.figures.append(Figure(name, unit, target))
        return self.figures[-1]

    @property
    def rounds(self):
        return range(1, self.arguments.rounds + 1)

    @contextlib.contextmanager
    def scratch(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-bench-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def finish(self):
        print(f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, {platform.node()}, {os.cpu_count()} processors")
        print_table(self.figures)
        if self.arguments.json:
            text = json.dumps({"figures": [figure.as_json() for figure in self.figures]}, indent=1)
            pathlib.Path(self.arguments.json).write_text(text + "\n")
