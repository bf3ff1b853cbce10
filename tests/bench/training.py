"""A training run as the benchmarks see it, whoever trained: when each step ended, and how much memory a process took.

`dlrun()` runs a job and reads the same from its run directory; memory is read from /proc while it runs.
"""
import dataclasses
import json
import pathlib
import statistics
import subprocess
import threading
import time

import figures

WARM_UP = 50  # steps that no rate counts: first touches, caches, the frequency of the processor
WINDOW = 100  # steps
EXAMPLE = figures.ROOT / "share/examples/fashion-mnist.yaml"
DATA = "/usr/share/datasets/fashion-mnist"


@dataclasses.dataclass
class Measured:
    started: float      # time.time() just before the command
    ends: dict          # step -> time.time() at its end; at least step 1 and every 50th
    images_per_step: int  # of all ranks
    peak_mib: float     # of the largest rank
    processes: dict = dataclasses.field(default_factory=dict)  # kind -> MiB: see Watch
    folder: pathlib.Path | None = None

    @property
    def first_step(self):
        """Seconds from the command to the end of the first step."""
        return self.ends[1] - self.started

    def seconds(self, first, last):
        return self.ends[last] - self.ends[first]

    @property
    def last(self):
        return max(step for step in self.ends if step % 50 == 0)

    @property
    def images_per_second(self):
        """The median window: one disturbed window does not decide."""
        starts = range(WARM_UP, self.last - WINDOW + 1, WINDOW)
        return statistics.median(WINDOW * self.images_per_step / self.seconds(start, start + WINDOW) for start in starts)

    @property
    def steps_per_second(self):
        """The mean from warm-up to the end: pauses count."""
        return (self.last - WARM_UP) / self.seconds(WARM_UP, self.last)


class Watch:
    """The peak memory of a process and its descendants, by kind: head, agent, rank. Samples four times per second, at
    no measurable cost; peaks come from VmHWM, so that only the growth in a process's last quarter second can be missed."""

    def __init__(self, pid):
        self.pid = pid
        self.peak = {}  # (kind, "rss" or "pss") -> MiB
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.sample_until_over)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def sample_until_over(self):
        while not self.over.wait(0.25):
            for pid in self.family():
                self.sample(pid)

    def family(self):
        found, waiting = [], [self.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            try:
                waiting += [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                            for child in (task / "children").read_text().split()]
            except OSError:
                pass  # it has ended meanwhile
        return found

    def kind(self, pid):
        program = pathlib.Path(f"/proc/{pid}/exe").readlink().name  # what runs, whatever its command line calls it
        if program == "dlrun":
            return "agent" if b"agent" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2] else "head"
        return "rank" if program == "dlrun-train" else None

    def sample(self, pid):
        try:
            kind = self.kind(pid)
            if kind is None:
                return
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            shares = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            return  # it has ended meanwhile
        self.note(kind, "rss", status, "VmHWM:")
        self.note(kind, "pss", shares, "Pss:")

    def note(self, kind, measure, text, label):
        for line in text.splitlines():
            if line.startswith(label):
                mib = int(line.split()[1]) / 1024
                self.peak[kind, measure] = max(mib, self.peak.get((kind, measure), 0))


def lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def ends_of_steps(run):
    return {line["step"]: line["time"] for line in lines(run) if "images_per_s" in line}


def accuracy(measured):
    """Of the last evaluation, as a fraction."""
    return [line["test_accuracy"] for line in lines(measured.folder / "run") if "test_accuracy" in line][-1]


def dlrun(program, folder, settings, job=EXAMPLE):
    """Trains `job` with `settings` ({"train.epochs": 1}) in a run directory below `folder`, which must not exist."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    run = folder / "run"
    command = [program, "--quiet", "--run-dir", str(run)]
    settings = {"checkpoint.dir": folder / "checkpoints", **settings}
    for path, value in settings.items():
        command += ["--set", f"{path}={value}"]
    with open(folder / "output", "w", encoding="utf-8") as output:
        started = time.time()
        process = subprocess.Popen([*command, str(job)], env=figures.environment(), stdout=output, stderr=output)
        with Watch(process.pid) as seen:
            code = process.wait()
    if code:
        figures.fail(f"dlrun ended with {code}: {' '.join(command)}\n{(folder / 'output').read_text()}")
    return Measured(started, ends_of_steps(run), 2 * 64, seen.peak.get(("rank", "rss"), 0), seen.peak, folder)
