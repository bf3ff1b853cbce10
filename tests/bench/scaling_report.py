"""Runs the points of gpu_scaling within a budget and keeps what is known: figures, what failed, what was dropped. It is written
down after each point, so that a call that is killed keeps what it had."""
import collections
import dataclasses
import json
import pathlib
import time

import figures
import scaling_table
from scaling_processes import Failed

GIVE_UP_AFTER = 2  # failures of one kind in a row: GPU time is short, and the third would hardly fare better


class Report:
    """`machine`: facts that are printed above the table; `path`: of the JSON, or None."""

    def __init__(self, machine, path):
        self.machine, self.path = machine, path
        self.measured, self.failed, self.dropped = {}, [], []

    @property
    def figures(self):
        return scaling_table.table(self.measured)

    def keep(self, point, seen):
        self.measured[point] = seen
        figures.say(f"{point}: {brief(seen)}")
        if "torch" in seen:
            self.machine["torch"] = seen["torch"]

    def fail(self, point, why):
        self.failed.append({"point": str(point), "why": why})
        figures.say(f"FAILED {point}: {why}")

    def drop(self, point, why):
        self.dropped.append({"point": str(point), "why": why})
        figures.say(f"DROPPED {point}: {why}")

    def write(self):
        if not self.path:
            return
        measured = [{"point": dataclasses.asdict(point), **seen} for point, seen in self.measured.items()]
        text = json.dumps({**self.machine, "figures": [figure.as_json() for figure in self.figures], "failed": self.failed,
                           "dropped": self.dropped, "measured": measured}, indent=1)
        path = pathlib.Path(self.path)
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(text + "\n", encoding="utf-8")
        beside.replace(path)

    def show(self):
        print(", ".join(f"{name} {value}" for name, value in self.machine.items()))
        if self.measured:
            figures.print_table(self.figures)
        for word, points in (("DROPPED", self.dropped), ("FAILED", self.failed)):
            for entry in points:
                print(f"{word} {entry['point']}: {entry['why'].splitlines()[0]}")


def brief(seen):
    """The numbers of a point in one line."""
    shown = {name: value for name, value in seen.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
    for line in seen.get("sums", []):
        shown[scaling_table.size_text(line["bytes"])] = max(value for name, value in line.items() if name.endswith("per_second"))
    return ", ".join(f"{name} {figures.number(value)}" for name, value in shown.items())


def attempt(point, runs, budget, report):
    """Whether the point was measured."""
    began = time.monotonic()
    try:
        seen = runs.measure(point, budget.limit(point))
    except Exception as problem:  # pylint: disable=broad-except  # it is reported, and costs only its own figure
        report.fail(point, str(problem) if isinstance(problem, Failed) else f"{type(problem).__name__}: {problem}")
        return False
    took = time.monotonic() - began
    budget.took(point, took)
    report.keep(point, {**seen, "load1": round(figures.load(), 2), "took_s": round(took, 2)})
    return True


def why_not(point, failures, budget, report):
    """Why a point is not tried; empty where it is."""
    if failures[same_work(point)] >= GIVE_UP_AFTER:
        return f"{GIVE_UP_AFTER} of its kind have failed"
    ours = sum(count for (kind, side, _), count in failures.items() if (kind, side) == ("train", "dlrun"))
    if ours >= GIVE_UP_AFTER and not any(done.side == "dlrun" for done in report.measured):
        return "dlrun's trainings fail, so there is nothing to compare"
    if not budget.fits(point):
        return f"takes about {budget.estimate(point):.0f} s, and {budget.left:.0f} s are left"
    return ""


def same_work(point):
    return point.kind, point.side, point.model


def measure(points, runs, budget, report):
    """A point whose kind has failed twice in a row is not tried again, and all ends where no training of ours succeeds."""
    failures = collections.Counter()
    for point in points:
        if why := why_not(point, failures, budget, report):
            report.drop(point, why)
        elif attempt(point, runs, budget, report):
            failures[same_work(point)] = 0
        else:
            failures[same_work(point)] += 1
        report.write()
