"""The figures of gpu_scaling out of what its points have measured. Pure.

`measured` is {Point: {"images_per_s": ..., ...}}; what is missing (dropped, failed) leaves its row out, or its row without a
peer and then without a target that needs one."""
import dataclasses

import figures
from scaling_plan import GLOBAL_BATCH

NAMES = {"resnet50": "ResNet-50", "inception-v3": "Inception v3"}
LINEAR = {("resnet50", 256): 97, ("resnet50", 64): 94}  # %, at least, of as many times one GPU
FIRST_STEP = 5  # seconds, at most
SUM_RATIO = 0.98
CAPTURED, ISSUED = "captured_gb_per_second", "issued_gb_per_second"


def gpus_text(gpus):
    return f"{gpus} GPU{'s' if gpus > 1 else ''}"


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def work_text(point):
    return f"{NAMES[point.model]}, {point.batch} per GPU, {gpus_text(point.gpus)}"


def times_text(point, base):
    return f"of {point.gpus // base.gpus} x {base.gpus}"


class Table:
    def __init__(self, measured):
        self.measured, self.rows = measured, []
        self.rounds = sorted({point.number for point in measured})

    def by_round(self, point, what):
        """{round: value}, of the rounds that have it."""
        found = {number: self.measured.get(dataclasses.replace(point, number=number), {}).get(what) for number in self.rounds}
        return {number: value for number, value in found.items() if value is not None}

    def row(self, name, unit, target, point, ours, theirs=None):
        """Values by round. With a peer, only the rounds count that have both; without one, a ratio has no target."""
        theirs = theirs or {}
        rounds = [number for number in ours if number in theirs] or list(ours)
        if not rounds:
            return
        figure = figures.Figure(name, unit, "-" if target.startswith("ratio") and rounds[0] not in theirs else target)
        figure.pairs = [(ours[number], theirs.get(number)) for number in rounds]
        loads = self.by_round(point, "load1")
        figure.loads = [loads.get(number, 0) for number in rounds]
        self.rows.append(figure)

    def compare(self, name, unit, target, point, side, what):
        """A row of one value against that of another side of the same point."""
        self.row(name, unit, target, point, self.by_round(point, what), self.by_round(dataclasses.replace(point, side=side), what))

    def points(self, kind, side="dlrun"):
        """Distinct points of any round, as of round 1."""
        found = {dataclasses.replace(point, number=1) for point in self.measured if (point.kind, point.side) == (kind, side)}
        return sorted(found, key=lambda point: (point.model != "resnet50", -point.batch, point.gpus))

    def linear(self, point, base, what="images_per_s"):
        """{round: % of linear}; `base` is the same work on fewer GPUs."""
        many, one = self.by_round(point, what), self.by_round(base, what)
        return {number: 100 * many[number] / one[number] * base.gpus / point.gpus for number in many if number in one}

    def linear_row(self, name, target, point, base, peer):
        theirs = self.linear(dataclasses.replace(point, side=peer), dataclasses.replace(base, side=peer))
        if theirs or peer == "eager":
            self.row(f"{name}, {peer}", "%", target, point, self.linear(point, base), theirs)

    def rates(self, peer):
        """Images a second beside the peer's; without a peer, ours are in eager's row."""
        for point in self.points("train"):
            if peer == "eager" or self.by_round(dataclasses.replace(point, side=peer), "images_per_s"):
                self.compare(f"{work_text(point)}, {peer}", "images/s", "ratio >= 1", point, peer, "images_per_s")

    def weak(self, peer):
        """What is kept of linear with as many images per GPU."""
        for point in self.points("train"):
            base = min((one for one in self.points("train") if (one.model, one.batch) == (point.model, point.batch)),
                       key=lambda one: one.gpus)
            if base.gpus == point.gpus:
                continue
            name = f"{work_text(point)} {times_text(point, base)}"
            least = LINEAR.get((point.model, point.batch))
            self.linear_row(name, f"ours >= {least}" if least else "-", point, base, peer)
            if peer == "eager":
                kept = self.linear(point, base, "images_per_s_same_batch")
                self.row(f"{name}, batch stays on the GPU", "%", "-", point, kept)

    def strong(self):
        """The same global batch on more GPUs, each with a part of it."""
        found = [point for point in self.points("train") if point.model == "resnet50" and point.batch * point.gpus == GLOBAL_BATCH]
        base = min(found, key=lambda point: point.gpus, default=None)
        for point in found:
            if point.gpus > base.gpus:
                name = f"ResNet-50, {GLOBAL_BATCH} in all, {gpus_text(point.gpus)} {times_text(point, base)}"
                self.linear_row(name, "-", point, base, "eager")

    def speeds(self, point, side, what):
        """{bytes: {round: GB/s}}."""
        out = {}
        for number, lines in self.by_round(dataclasses.replace(point, side=side), "sums").items():
            for line in lines:
                if what in line:
                    out.setdefault(line["bytes"], {})[number] = line[what]
        return out

    def sums(self):
        """What a training does, a captured sum, against the faster of NCCL's own: issued by one process, or captured."""
        for point in self.points("sum"):
            raw, graph = self.speeds(point, "nccl", ISSUED), self.speeds(point, "nccl-graph", CAPTURED)
            for size, ours in self.speeds(point, "dlrun", CAPTURED).items():
                peers = [peer[size] for peer in (raw, graph) if size in peer]
                best = {number: max(peer[number] for peer in peers if number in peer) for peer in peers for number in peer}
                self.row(f"sum of {size_text(size)}, {gpus_text(point.gpus)}, NCCL's best", "GB/s", f"ratio >= {SUM_RATIO}", point,
                         ours, best)
            for size, ours in self.speeds(point, "dlrun", ISSUED).items():
                self.row(f"sum of {size_text(size)}, {gpus_text(point.gpus)}, both issued", "GB/s", "-", point, ours, raw.get(size))

    def first(self):
        for point in self.points("first"):
            theirs = self.by_round(dataclasses.replace(point, kind="train", side="eager"), "first_step_s")
            self.row(f"command to first step, {gpus_text(point.gpus)}", "s", f"ours <= {FIRST_STEP}", point,
                     self.by_round(point, "first_step_s"), theirs)

    def kill(self):
        for point in self.points("kill"):
            where = f"kill -9 of 1 of {point.gpus} ranks"
            for what, name in (("returned_s", "to the launcher's return"), ("gone_s", "to no process of the job")):
                self.compare(f"{where} {name}, torchrun", "s", "ratio <= 1", point, "torchrun", what)
            named = self.by_round(point, "named")
            self.row(f"{where}: it is named", "", "ours >= 1", point, {number: int(value) for number, value in named.items()})
            self.row(f"{where}: processes left", "", "ours <= 0", point, self.by_round(point, "left"))

    def memory(self):
        for peer in ("eager", "compile"):
            for point in self.points("train"):
                if self.by_round(dataclasses.replace(point, side=peer), "gpu_mib"):
                    self.compare(f"memory of a GPU, {work_text(point)}, {peer}", "MiB", "ratio <= 1", point, peer, "gpu_mib")


def table(measured):
    """The figures of all that is there."""
    out = Table(measured)
    for peer in ("eager", "compile"):
        out.rates(peer)
    for peer in ("eager", "compile"):
        out.weak(peer)
    out.strong()
    out.sums()
    out.first()
    out.kill()
    out.memory()
    return out.rows
