"""Processes of a benchmark that may hang: all that was started is marked in its environment, is found by that mark wherever it
hangs in the tree, and is ended when the time is over. For gpu_scaling."""
import os
import pathlib
import signal
import subprocess
import time
import uuid

MARK = "GPU_SCALING_MARK"
# NVLink multicast stays off on both sides: it is a setting of the host's, and others may share that host.
WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


class Failed(Exception):
    """A run that gave no figure; the text says why."""


class Group:
    """The processes of one run, each a command with its own additional environment; the first one's output is the run's."""

    def __init__(self, commands, folder, limit):
        folder.mkdir(parents=True)
        self.mark, self.folder, self.limit = uuid.uuid4().hex, folder, limit
        self.commands, self.processes, self.began = commands, [], None

    def __enter__(self):
        self.began = time.time()
        try:
            self.start()
        except OSError as problem:
            self.__exit__()
            raise Failed(f"cannot start {self.commands[0][0][0]}: {problem}") from problem
        return self

    def start(self):
        for number, (words, settings) in enumerate(self.commands):
            environment = {**os.environ, **WITHOUT_MULTICAST, **settings, MARK: self.mark}
            with open(self.folder / f"output-{number}", "w", encoding="utf-8") as output:
                self.processes.append(subprocess.Popen([str(word) for word in words], env=environment, cwd=self.folder,
                                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT))

    def __exit__(self, *_):
        for pid in self.alive():
            end(pid, signal.SIGTERM)
        deadline = time.monotonic() + 5
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in self.alive():
            end(pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def output(self, number=0):
        return (self.folder / f"output-{number}").read_text(encoding="utf-8", errors="replace")

    def alive(self):
        """{pid: its environment} of what was started and has not ended."""
        found, needle = {}, f"{MARK}={self.mark}".encode()
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (path / "environ").read_bytes().split(b"\0")
                if needle in variables and (path / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                    found[int(path.name)] = set(variables)
            except OSError:
                continue  # it ended meanwhile
        return found

    def wait_until(self, condition, what):
        """Waits for `condition`; Failed where the run ends or the time is over before."""
        while not condition():
            codes = [process.poll() for process in self.processes]
            if any(code is not None for code in codes) and not condition():
                self.fail(f"ended with {codes} before {what}")
            if time.time() - self.began > self.limit:
                self.fail(f"{self.limit:.0f} s without {what}")
            time.sleep(0.02)

    def wait(self):
        """Until all have ended well; where one has failed the others do not matter."""
        def ended():
            codes = [process.poll() for process in self.processes]
            return any(codes) or None not in codes
        while not ended():
            if time.time() - self.began > self.limit:
                self.fail(f"did not end within {self.limit:.0f} s")
            time.sleep(0.02)
        if any(process.poll() for process in self.processes):
            time.sleep(1)  # the others may say why
            self.fail(f"exit codes {[process.poll() for process in self.processes]}")

    def fail(self, why):
        said = "\n".join(self.output(number)[-1500:] for number in range(len(self.processes)))
        raise Failed(f"{why}\n{said}"[:4000])


def end(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended by itself
