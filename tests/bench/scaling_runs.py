"""Runs the points of gpu_scaling: dlrun with its own runtime in benchmark mode, PyTorch's ranks started directly (as pytorch.py
does: no start-up of torchrun's own), NCCL alone; and what each has measured, as a dictionary."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

from scaling_processes import Failed, Group

HERE = pathlib.Path(__file__).resolve().parent
SHAPES = {"resnet50": [3, 224, 224], "inception-v3": [3, 299, 299], "mnist-cnn": [1, 28, 28]}
PEERS_NAME = {"resnet50": "resnet50", "inception-v3": "inception_v3"}
WINDOW = {256: 30, 64: 60, 32: 100}  # timed steps of ours, three times; the peer takes five windows of a fifth of 60
EPOCH = 4  # steps: see job()
JOB = """name: gpu-scaling
framework: builtin
resources: {{nodes: 1, {ranks}}}
train:
  model: {model}
  data: {{format: synthetic, shape: {shape}, classes: {classes}, samples: {samples}}}
  batch: {batch}
  precision: {precision}
  device: {device}
  optimizer: {{name: sgd, lr: 0.001, momentum: 0.9}}
  benchmark: {benchmark}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def used_memory():
    """MiB in use on each GPU, by all processes."""
    text = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return [int(line) for line in text.split()]


class MemoryWatch:
    """The largest part of one GPU's memory in a run, with context and libraries: the driver's figure once per second,
    less what was in use before the first run. A rank has a GPU of its own, so a GPU's memory is a process's."""

    def __init__(self):
        self.before = used_memory()
        self.over, self.largest, self.thread = None, None, None

    def __enter__(self):
        self.over, self.largest = threading.Event(), None
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def watch(self):
        while not self.over.wait(1):
            self.largest = max(self.largest or 0, *(now - then for now, then in zip(used_memory(), self.before)))


class Runs:
    """`programs`: where dlrun is; `python`: one that has the peer's PyTorch; `device`: cuda or cpu; `memory`: of a GPU, what
    sees how much is in use."""

    def __init__(self, programs, python, device, folder, memory=None):
        self.bin, self.python, self.device, self.folder = pathlib.Path(programs), python, device, folder
        self.memory, self.started = memory, 0

    @property
    def on_gpu(self):
        return self.device == "cuda"

    # What a point runs: [(words, environment)], a process each.

    def commands(self, point, run=pathlib.Path("RUN")):
        if point.kind == "sum":
            return self.sum_commands(point, run)
        if point.side == "dlrun":
            return [([self.bin / "dlrun", "--quiet", "--run-dir", run / "run", run / "job.yaml"], {})]
        if point.side == "torchrun":
            start = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={point.gpus}"]
            if not self.on_gpu:  # Debian 12's fails without
                start += ["--redirects", "2", "--tee", "2"]
            return [([self.python, *start, *self.peer(point, "eager", 10**6)], {"PYTHONUNBUFFERED": "1"})]
        words = [self.python, *self.peer(point, point.side, 60 if self.on_gpu else 10)]
        return self.as_ranks(words, point.gpus)

    def peer(self, point, mode, steps):
        return [HERE / "gpu_pytorch.py", PEERS_NAME[point.model], mode, point.batch, steps, *([] if self.on_gpu else ["cpu"])]

    def as_ranks(self, words, ranks):
        if ranks == 1:
            return [(words, {"PYTHONUNBUFFERED": "1"})]
        world = {"PYTHONUNBUFFERED": "1", "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                 "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // ranks))}
        return [(words, {**world, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)]

    def sum_commands(self, point, run):
        if point.side == "dlrun":
            return [([sys.executable, HERE.parent / "gpu/ranks.py", point.gpus, self.bin / "dlrun-gpu-bench", "sum"], {})]
        if point.side == "nccl-graph":
            return self.as_ranks([self.python, HERE / "gpu_pytorch.py", "sum", "captured"], point.gpus)
        gpus = {"CUDA_VISIBLE_DEVICES": ",".join(str(gpu) for gpu in range(point.gpus))}
        return [([run.parent / "gpu_raw_nccl"], gpus)]

    def job(self, point):
        """An epoch has four steps, since each rank holds all samples. At its end the next batch is not made beside the step, which
        a real training does not notice; the median step does not, either."""
        model = point.model if self.on_gpu else "mnist-cnn"
        benchmark = {"train": f"{{warmup: 10, steps: {WINDOW[point.batch] if point.batch in WINDOW else 40}, repeat: 3}}",
                     "first": "{warmup: 1, steps: 1, repeat: 1}", "kill": "{warmup: 10, steps: 1000000, repeat: 1}"}[point.kind]
        if not self.on_gpu and point.kind == "train":
            benchmark = "{warmup: 2, steps: 4, repeat: 3}"
        steps = 1 if point.kind == "first" else EPOCH
        ranks = f"gpus-per-node: {point.gpus}" if self.on_gpu else f"tasks-per-node: {point.gpus}, cpus-per-task: 1"
        return JOB.format(ranks=ranks, model=model, shape=SHAPES[model], classes=1000 if self.on_gpu else 10,
                          samples=point.batch * point.gpus * steps, batch=point.batch, device=self.device,
                          precision="bf16" if self.on_gpu else "f32", benchmark=benchmark)

    # What it measures.

    def measure(self, point, limit):
        self.started += 1
        run = self.folder / f"{self.started:03}-{point.kind}-{point.side}-{point.gpus}"
        if point.side == "nccl":
            self.build_raw_nccl()
        group = Group(self.commands(point, run), run, limit)
        if point.side == "dlrun" and point.kind != "sum":
            (run / "job.yaml").write_text(self.job(point), encoding="utf-8")
        how = {"train": self.train, "first": self.train, "sum": self.sums, "kill": self.kill}[point.kind]
        return how(point, group)

    def build_raw_nccl(self):
        program = self.folder / "gpu_raw_nccl"
        if program.exists():
            return
        done = subprocess.run(["nvcc", "-O2", "-arch=native", "-o", program, HERE / "gpu_raw_nccl.cu", "-lnccl"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise Failed(f"nvcc ended with {done.returncode}: {done.stdout[-2000:]}")

    def train(self, point, group):
        watched = self.memory if point.kind == "train" and point.batch == 256 else contextlib.nullcontext()
        with watched or contextlib.nullcontext() as memory, group:
            group.wait()
        seen = self.ours(group) if point.side == "dlrun" else self.theirs(group)
        return {**seen, "gpu_mib": memory.largest if memory else None}

    def ours(self, group):
        run = group.folder / "run"
        result = json.loads((run / "record.json").read_text())["result"]
        first = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
        return {"images_per_s": result["images_per_s_median_step"], "first_step_s": first["time"] - group.began,
                "images_per_s_same_batch": result["input"]["images_per_s_repeated_batch"], "result": result}

    def theirs(self, group):
        first, *_, last = json_lines(group.output())
        return {"images_per_s": last["images_per_second"], "first_step_s": first["first_step_at"] - group.began,
                "torch": last["torch"], "device": last["device"], "allocated_mib": last["memory_bytes"] / 2**20}

    def sums(self, _, group):
        with group:
            group.wait()
        return {"sums": [line for line in json_lines(group.output()) if "bytes" in line]}

    def kill(self, point, group):
        """kill -9 of the last rank, once the steps go on."""
        variable = b"DLRUN_RANK=" if point.side == "dlrun" else b"RANK="
        variable += str(point.gpus - 1).encode()
        with group:
            group.wait_until(lambda: self.is_training(point, group), "steps")
            victim = [pid for pid, variables in group.alive().items() if variable in variables]
            if not victim:
                group.fail(f"no process has {variable.decode()}")
            killed = time.monotonic()
            os.kill(max(victim), signal.SIGKILL)
            while group.processes[0].poll() is None and time.time() - group.began < group.limit:
                time.sleep(0.005)
            returned = time.monotonic() - killed
            while group.alive() and time.monotonic() - killed < returned + 10:
                time.sleep(0.005)
            gone = time.monotonic() - killed
            left = len(group.alive())
            code = group.processes[0].poll()
        if code is None:
            group.fail(f"did not end within {returned:.0f} s after rank {point.gpus - 1} was killed")
        return {"returned_s": returned, "gone_s": gone, "left": left, "code": code, "said": group.output()[-1500:],
                "named": f"(rank {point.gpus - 1})" in group.output() and "SIGKILL" in group.output()}

    def is_training(self, point, group):
        if point.side == "torchrun":
            return "first_step_at" in group.output()
        metrics = group.folder / "run/metrics.jsonl"
        return metrics.is_file() and len(metrics.read_text().splitlines()) >= 2


def json_lines(text):
    """The objects among the lines: other libraries write theirs between."""
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            found += [json.loads(line)] if line.startswith("{") else []
    if not found:
        raise Failed(f"printed no figures: {text[-1500:]}")
    return found
