"""What gpu_scaling measures, the most important first, and what a budget of seconds leaves out. Pure: it starts nothing.

A point is one run of one side. Points run in the order of IMPORTANCE, and ours and its peer come one after the other. A point
that no longer fits the budget is dropped; a later and shorter one may still fit. So what is dropped is always the least
important, and the order is the same in every call.
"""
import dataclasses

SIDES = ("dlrun", "eager", "compile", "torchrun", "nccl", "nccl-graph")
PARTS = ("weak", "strong", "sums", "first", "kill", "memory")
GLOBAL_BATCH = 256  # of strong scaling


@dataclasses.dataclass(frozen=True)
class Point:
    kind: str  # train, first, sum, kill
    side: str  # of SIDES; eager, compile and torchrun are PyTorch's
    gpus: int
    model: str = "resnet50"
    batch: int = 256  # images per GPU
    number: int = 1  # of the round

    def __str__(self):
        what = f"{self.model} {self.batch} " if self.kind != "sum" else ""
        return f"{self.kind} {what}{self.side}, {self.gpus} GPU{'s' * (self.gpus > 1)}, round {self.number}"

    @property
    def key(self):
        """Whose time tells how long the next one takes."""
        return self.kind, self.side


BOTH = ("dlrun", "eager")
# (part, kind, model, batch, which numbers of GPUs, sides). ends: the fewest and the most; rest: those between.
IMPORTANCE = (
    ("weak", "train", "resnet50", 256, "ends", BOTH),
    ("memory", "train", "resnet50", 256, "most", BOTH),
    ("weak", "train", "resnet50", 64, "ends", BOTH),
    ("first", "first", "resnet50", 256, "most", ("dlrun",)),
    ("first", "train", "resnet50", 256, "most", ("eager",)),
    ("kill", "kill", "resnet50", 64, "most", ("dlrun",)),
    ("sums", "sum", "", 0, "most", ("nccl", "dlrun")),
    ("strong", "train", "resnet50", None, "ends", BOTH),
    ("weak", "train", "resnet50", 32, "ends", BOTH),
    ("weak", "train", "inception-v3", 64, "ends", BOTH),
    ("weak", "train", "resnet50", 256, "most", ("compile",)),
    ("weak", "train", "resnet50", 256, "rest", BOTH),
    ("weak", "train", "resnet50", 64, "rest", BOTH),
    ("sums", "sum", "", 0, "rest", ("nccl", "dlrun")),
    ("first", "first", "resnet50", 256, "rest", ("dlrun",)),
    ("sums", "sum", "", 0, "most", ("nccl-graph",)),
    ("strong", "train", "resnet50", None, "rest", BOTH),
    ("weak", "train", "resnet50", 64, "most", ("compile",)),
    ("weak", "train", "resnet50", 256, "fewest", ("compile",)),
    ("weak", "train", "resnet50", 64, "fewest", ("compile",)),
    ("first", "first", "resnet50", 256, "fewest", ("dlrun",)),
    ("kill", "kill", "resnet50", 64, "most", ("torchrun",)),
    ("weak", "train", "resnet50", 32, "rest", BOTH),
    ("weak", "train", "inception-v3", 64, "rest", BOTH),
    ("weak", "train", "inception-v3", 64, "most", ("compile",)),
    ("weak", "train", "resnet50", 32, "most", ("compile",)),
    ("sums", "sum", "", 0, "rest", ("nccl-graph",)),
    ("weak", "train", "resnet50", 256, "rest", ("compile",)),
    ("weak", "train", "resnet50", 64, "rest", ("compile",)),
)
ON_CPU = ("weak", "strong", "first", "kill")  # what can be tried without a GPU
SECONDS = {  # of a point on one GPU, and of each further one; the first of its kind corrects these
    ("train", "dlrun"): (9, 1), ("train", "eager"): (17, 2), ("train", "compile"): (60, 4), ("first", "dlrun"): (6, 0.5),
    ("sum", "dlrun"): (9, 1), ("sum", "nccl"): (14, 1), ("sum", "nccl-graph"): (18, 2), ("kill", "dlrun"): (14, 1),
    ("kill", "torchrun"): (35, 2)}


def chosen(counts, which):
    """Of ascending numbers of GPUs."""
    ends = sorted({counts[0], counts[-1]})
    return {"ends": ends, "fewest": counts[:1], "most": counts[-1:], "rest": [n for n in counts if n not in ends]}[which]


def batch_of(batch, gpus):
    return GLOBAL_BATCH // gpus if batch is None else batch


def plan(parts, counts, rounds=1, sides=None):
    """All points, the most important first; further rounds come after the whole of the first."""
    counts, out = sorted(counts), {}
    for number in range(1, rounds + 1):
        for part, kind, model, batch, which, on in IMPORTANCE:
            if part not in parts:
                continue
            for gpus in chosen(counts, which):
                for side in on:
                    if not (kind == "sum" and gpus == 1) and not (kind == "kill" and gpus == 1) and (not sides or side in sides):
                        out[Point(kind, side, gpus, model, batch_of(batch, gpus), number)] = True
    return list(out)


class Budget:
    """Seconds that are left, and whether a point fits into them."""

    def __init__(self, seconds, now):
        self.now, self.began, self.seconds, self.factors = now, now(), seconds, {}

    @property
    def left(self):
        return self.seconds - (self.now() - self.began)

    def estimate(self, point):
        one, more = SECONDS[point.key]
        return (one + more * (point.gpus - 1)) * self.factors.get(point.key, 1)

    def fits(self, point):
        return self.estimate(point) <= self.left

    def limit(self, point):
        """When a run has hung: it may take much longer than expected, but not all that is left for others."""
        return min(4 * self.estimate(point) + 30, self.left + 30)

    def took(self, point, seconds):
        """The next of its kind is expected to be no shorter than this one."""
        known = self.estimate(point) / self.factors.get(point.key, 1)
        self.factors[point.key] = max(0.2, seconds / known)


def forecast(points, seconds):
    """The points that would be dropped if each took what SECONDS says, and the sum of the others."""
    clock, dropped = [0.0], []
    budget = Budget(seconds, lambda: clock[0])
    for point in points:
        if budget.fits(point):
            clock[0] += budget.estimate(point)
        else:
            dropped.append(point)
    return dropped, clock[0]
