#!/usr/bin/env python3
"""Frameworks on two real GPUs: dlrun starts a short training of each; it is ended in the middle and started again. Every
rank must compute on a GPU of its own, and no step may be lost or done twice. Run by hand; DLRUN_BIN is the folder of dlrun.
GPUS=1 runs the same with one rank, which cannot show that ranks choose their own GPU.
Arguments: names of frameworks, else all. The last lines are one per framework: NAME ok, or NAME FAILED REASON."""
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

DLRUN = os.path.join(os.environ["DLRUN_BIN"], "dlrun")
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
STEPS, END_AT, LIMIT = 40, 10, 150  # seconds a run
GPUS = int(os.environ.get("GPUS", "2"))


class Failed(Exception):
    pass


def there(module):
    return importlib.util.find_spec(module) is not None


def mpi_flag():
    """Which protocol mpi4py's library speaks: the interpreter is not linked to it, so nobody can see it from outside."""
    version = subprocess.run([sys.executable, "-c", "from mpi4py import MPI; print(MPI.Get_library_version())"],
                             capture_output=True, text=True).stdout
    return "pmix" if "Open MPI" in version else "pmi1"


class Training:
    def __init__(self, name, end, flags=(), program=None):
        self.name, self.end, self.program = name, end, str(PROGRAMS / f"train_{program or name}.py")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"dlrun-gpu-{name}-"))
        self.command = [DLRUN, "--framework", name, "--gpus-per-node", str(GPUS), *flags]
        self.environment = dict(os.environ, STEPS=str(STEPS), GPUS=str(GPUS), OMP_NUM_THREADS="1")

    def start(self, number):
        command = [*self.command, "--run-dir", f"run{number}", "--", sys.executable, self.program]
        self.output = open(self.folder / f"out{number}", "w+")
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=self.output, stderr=subprocess.STDOUT)

    def said(self):
        self.output.seek(0)
        return "\n    ".join(self.output.read().splitlines()[-25:])

    def wait(self, process, until, what):
        """True once `until` holds; the process must live as long."""
        limit = time.time() + LIMIT
        while not until():
            if process.poll() is not None and not until():
                raise Failed(f"ended ({process.returncode}) before {what}:\n    {self.said()}")
            if time.time() > limit:
                process.kill()
                raise Failed(f"{LIMIT} s without {what}:\n    {self.said()}")
            time.sleep(0.05)

    def step(self):
        try:
            return int((self.folder / "step").read_text() or 0)
        except OSError:
            return 0

    def ranks(self):
        found = []
        for rank in range(GPUS):
            try:
                found.append(json.loads((self.folder / f"rank{rank}").read_text()))
            except (OSError, ValueError):
                raise Failed(f"rank {rank} did not say who it is:\n    {self.said()}") from None
        return found

    def check_devices(self):
        devices = [rank["device"] for rank in self.ranks()]
        if len(set(devices)) != GPUS:
            raise Failed(f"all ranks compute on {devices[0]}")
        if "computes on" in self.said():
            raise Failed(f"a rank was found on another GPU:\n    {self.said()}")

    def run(self):
        process = self.start(1)
        self.wait(process, lambda: self.step() >= END_AT, f"step {END_AT}")
        self.check_devices()
        if self.end == "interrupt":
            process.send_signal(signal.SIGINT)
        else:
            os.kill(self.ranks()[-1]["pid"], signal.SIGKILL)
        self.wait(process, lambda: process.poll() is not None, "its end")
        if process.returncode == 0 or self.step() >= STEPS:
            raise Failed(f"was ended in the middle, and says {process.returncode} at step {self.step()}")
        process = self.start(2)
        self.wait(process, lambda: process.poll() is not None, "its end after the resume")
        if process.returncode != 0:
            raise Failed(f"after the resume: exit code {process.returncode}:\n    {self.said()}")
        self.check_devices()
        done = json.loads((self.folder / "done").read_text())
        if not 0 < done["from"] < STEPS or done["steps"] != STEPS or done["counted"] != STEPS:
            raise Failed(f"resumed at {done['from']}, ended at step {done['steps']}, steps done {done['counted']} of {STEPS}")
        shutil.rmtree(self.folder)


def check_roles():
    """A parameter server sees no GPU, and each worker one."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-gpu-roles-"))
    (folder / "roles.yaml").write_text("name: roles\nsummary: workers and a server\nroles:\n"
                                       "  worker: {default: tasks-per-node}\n  ps: {count: 1, gpus: 0}\n")
    script = "import os, torch; print('sees', os.environ['DLRUN_ROLE'], torch.cuda.device_count())"
    done = subprocess.run([DLRUN, "--framework-dir", str(folder), "--framework", "roles", "--gpus-per-node", str(GPUS), "--run-dir", "run", "--",
                           sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    seen = sorted(line.partition("sees ")[2] for line in done.stdout.splitlines() if "sees" in line)
    if done.returncode != 0 or seen != ["ps 0"] + ["worker 1"] * GPUS:
        raise Failed(f"exit code {done.returncode}, {seen}:\n    {done.stderr[-2000:]}")
    shutil.rmtree(folder)


CASES = {
    "pytorch": lambda: Training("pytorch", "kill").run(),
    "pytorch-torchrun": lambda: Training("pytorch-torchrun", "kill", program="pytorch").run(),
    "lightning": lambda: Training("lightning", "interrupt").run(),
    "accelerate": lambda: Training("accelerate", "interrupt").run(),
    "jax": lambda: Training("jax", "kill").run(),
    "mpi": lambda: Training("mpi", "kill", ["--mpi", mpi_flag()]).run(),
    "deepspeed": lambda: Training("deepspeed", "kill").run(),
    "roles": check_roles,
}


def main():
    wanted = sys.argv[1:] or [name for name in CASES if name != "deepspeed" or there("deepspeed")]
    results = []
    for name in wanted:
        began = time.time()
        try:
            CASES[name]()
            result = "ok"
        except Failed as problem:
            result = f"FAILED {problem}"
        except Exception as problem:  # a case that breaks says so, and the others go on
            result = f"FAILED {type(problem).__name__}: {problem}"
        print(f"{name} {result} ({time.time() - began:.0f} s)", flush=True)
        results.append(f"{name} {result.splitlines()[0]}")
    print("\n" + "\n".join(results))
    return any("FAILED" in result for result in results)


if __name__ == "__main__":
    sys.exit(main())
