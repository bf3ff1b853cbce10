"""Runs the built dlrun as a person would, and looks for what it left behind. Used by the end-to-end tests beside it."""
import glob
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

DLRUN = os.path.join(os.environ["DLRUN_BIN"], "dlrun")  # set by ctest
IN_SHELL = shlex.quote(DLRUN)  # the same as a word of a shell's text
CLIENT = str(pathlib.Path(__file__).resolve().parents[2] / "share" / "python")  # dlrun_client.py
MARK = "DLRUN_TEST_MARK"


LIMIT = 600  # seconds; what takes longer hangs, however slow the machine is


def wait_until(condition, what, limit=LIMIT):
    """Until the condition holds; where it does not come, the error says what did not happen."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {limit} s in vain until {what}")
        time.sleep(0.01)


class Started(subprocess.Popen):
    """A program whose end is not waited for without a limit; the error of a hang shows its command."""

    def communicate(self, input=None, timeout=LIMIT):  # pylint: disable=redefined-builtin
        return super().communicate(input, timeout)

    def wait(self, timeout=LIMIT):
        return super().wait(timeout)


class Case(unittest.TestCase):
    """A test in a folder of its own. Every process it starts carries a mark in its environment, by which those that were
    left behind are found, whatever session or parent they have. At the end there must be none."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dlrun-e2e-")
        self.mark = uuid.uuid4().hex
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("DLRUN_", "SLURM_", "PBS_"))}
        # Debian 13 builds torch without libuv, and torch asks for it.
        self.environment.update({MARK: self.mark, "OMPI_ALLOW_RUN_AS_ROOT": "1", "USE_LIBUV": "0"})
        self.started = []

    def tearDown(self):
        left = self.marked()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(left, {}, "processes left behind")

    def marked(self):
        """{pid: command line} of every living process with our mark."""
        found = {}
        needle = f"{MARK}={self.mark}".encode()
        for path in glob.glob("/proc/[0-9]*/environ"):
            pid = int(path.split("/")[2])
            try:
                with open(path, "rb") as file:
                    if needle not in file.read().split(b"\0"):
                        continue
                with open(f"/proc/{pid}/stat") as file:
                    if file.read().rpartition(")")[2].split()[0] in "ZX":
                        continue
                with open(f"/proc/{pid}/cmdline") as file:
                    found[pid] = file.read().replace("\0", " ")
            except (OSError, IndexError):
                continue  # it has ended meanwhile
        return found

    def none_left(self):
        wait_until(lambda: not self.marked(), "no process is left")

    def start(self, *arguments, **options):
        options.setdefault("env", self.environment)
        options.setdefault("cwd", self.folder)
        first, program = options.pop("preexec_fn", lambda: None), options.pop("program", DLRUN)
        inside = options.pop("inside", ())  # a command that starts it, such as unshare

        def like_a_terminal():  # a test run in the background of a shell ignores SIGINT, and dlrun respects that
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            first()

        options["preexec_fn"] = like_a_terminal
        process = Started([*inside, program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **options)
        self.started.append(process)
        return process

    def dlrun(self, *arguments, **options):
        """(exit code, stdout, stderr)"""
        process = self.start(*arguments, **options)
        out, err = process.communicate()
        return process.returncode, out, err

    def plain(self, script, *flags, **options):
        """Runs a bash script as the ranks of a plain job."""
        return self.dlrun(*flags, "--framework", "plain", "--run-dir", "run", "--", "bash", "-c", script, **options)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def read(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def exists(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def record(self, run="run"):
        return json.loads(self.read(f"{run}/record.json"))

    def events(self, run="run"):
        """Those that are written so far: of a live run the last line may be half there."""
        return [json.loads(line) for line in self.read(f"{run}/events.jsonl").splitlines(keepends=True) if line.endswith("\n")]


def main():
    unittest.main(module=sys.modules["__main__"], verbosity=1)
