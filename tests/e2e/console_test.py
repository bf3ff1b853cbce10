#!/usr/bin/env python3
"""The console of a run with many ranks: folding on a terminal, the choice of ranks, many lines in bounded memory, and a rank
that floods."""
import os
import pty
import re
import resource
import shlex
import subprocess

import support
from support import wait_until


# Reports as the builtin runtime sends them.
REPORTS = r"""
import json, os, socket, time
control = socket.socket(socket.AF_UNIX)
control.connect(os.environ["DLRUN_CONTROL"])
def tell(**report):
    control.sendall((json.dumps({"rank": 0, **report}) + "\n").encode())
tell(step=1105, steps=1407, epoch=3, epochs=3, loss=0.3124, images_per_s=3900, seconds_left=3723)
while not os.path.exists("testing"):
    time.sleep(0.05)
tell(phase="testing")
while not os.path.exists("go"):
    time.sleep(0.05)
"""
# What a rank may try to do to the terminal of the one who looks at it.
ESCAPES = r"""
import json, os, socket, sys, time
control = socket.socket(socket.AF_UNIX)
control.connect(os.environ["DLRUN_CONTROL"])
def tell(**report):
    control.sendall((json.dumps({"rank": 0, **report}) + "\n").encode())
tell(phase="x\x1b]52;c;cHduZWQ=\x07\x1b[2J\nfaked: line\n" + "L" * 500)
tell(result={"note": "y\x1b]0;title\x07\nfaked: end"})
print("\x1b[31mred")
print("\x1b[?1049h")
sys.exit(int(sys.argv[1]))
"""


class Screen:
    """dlrun in a terminal of its own: what a person sees once the terminal has understood it."""

    def __init__(self, test, columns, *words):
        self.test, self.socket = test, os.path.join(test.folder, "tmux")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", "20", "-c", test.folder,
                  shlex.join([support.DLRUN, *words]) + "; touch ended; sleep 1000")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True, capture_output=True, text=True,
                              env={**self.test.environment, "LC_ALL": "C.UTF-8"}).stdout

    def lines(self):
        return [line for line in self.tmux("capture-pane", "-p").splitlines() if line]

    def await_lines(self, wanted):
        wait_until(lambda: self.lines() == wanted, f"the screen shows {wanted}")

    def resize(self, columns):
        self.tmux("resize-window", "-x", str(columns), "-y", "20")

    def close(self):
        self.tmux("kill-server")


class Console(support.Case):
    def on_terminal(self, *words):
        """What a person sees."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([support.DLRUN, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                                   env=self.environment, cwd=self.folder)
        self.started.append(process)
        os.close(theirs)
        out = b""
        while True:
            try:
                got = os.read(ours, 65536)
            except OSError:  # the terminal's end
                break
            if not got:
                break
            out += got
        os.close(ours)
        return process.wait(), out.decode().replace("\r\n", "\n")

    def job(self, script, *flags):
        return self.on_terminal("--color", "never", *flags, "--framework", "plain", "--run-dir", "run", "--tasks-per-node", "16", "--",
                                "bash", "-c", script)

    def test_equal_lines_are_folded_on_a_terminal(self):
        # All print together once the last one is there.
        script = "touch here.$DLRUN_RANK; until [ $(ls here.* | wc -l) = 16 ]; do sleep 0.01; done; echo hello; echo I am $DLRUN_RANK"
        code, out = self.job(script)
        self.assertEqual(code, 0)
        hello = [line for line in out.splitlines() if line.endswith(" hello")]
        named = sum(len(self.ranks_of(line)) for line in hello)
        self.assertEqual(named, 16, out)  # every rank once, in however many groups
        for rank in range(16):
            self.assertIn(f"[worker {rank}] I am {rank}\n", out)
            self.assertEqual(self.read(f"run/logs/{rank:04}-worker-{rank}.log"), f"hello\nI am {rank}\n")

    @staticmethod
    def ranks_of(line):
        ranks = []
        for part in line[line.index("[worker ") + 8:line.index("]")].split(","):
            first, _, last = part.partition("-")
            ranks += range(int(first), int(last or first) + 1)
        return ranks

    def test_nothing_is_folded_when_asked_not_to_or_into_a_pipe(self):
        code, out = self.job("echo hello", "--no-fold")
        self.assertEqual(code, 0)
        self.assertEqual(sum(line.endswith("] hello") for line in out.splitlines()), 16)
        _, out, _ = self.dlrun("--framework", "plain", "--tasks-per-node", "4", "--", "echo", "hello")
        self.assertEqual(sorted(out.splitlines()), [f"[worker {rank}] hello" for rank in range(4)])

    def test_the_ranks_that_are_named_are_shown_and_all_are_logged(self):
        code, out, _ = self.plain("echo $DLRUN_RANK", "--tasks-per-node", "5", "--tee", "worker:0-1,4")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(out.splitlines()), ["[worker 0] 0", "[worker 1] 1", "[worker 4] 4"])
        self.assertEqual(self.read("run/logs/0003-worker-3.log"), "3\n")

    def test_ranks_that_are_not_there_are_an_error_before_anything_starts(self):
        code, out, err = self.plain("echo started", "--tee", "7")
        self.assertEqual((code, out), (64, ""))
        self.assertIn("--tee: the job has no rank '7'", err)
        self.assertFalse(self.exists("run"))

    def test_64_ranks_with_10000_lines_each_lose_and_tear_none_in_bounded_memory(self):
        with open(os.path.join(self.folder, "out"), "wb") as file:
            process = subprocess.Popen([support.DLRUN, "--framework", "plain", "--run-dir", "run", "--no-bind", "--tasks-per-node", "64",
                                        "--", "bash", "-c", 'exec seq -f "line %.0f of $DLRUN_RANK, and so on" 10000'],
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, env=self.environment, cwd=self.folder)
            self.started.append(process)
            err = process.communicate()[1]
        self.assertEqual(process.returncode, 0, err)
        lines = {rank: [] for rank in range(64)}
        with open(os.path.join(self.folder, "out")) as file:
            for line in file:
                label, _, text = line.partition("] ")
                lines[int(label.removeprefix("[worker "))].append(text)
        for rank in range(64):
            self.assertEqual(lines[rank], [f"line {i} of {rank}, and so on\n" for i in range(1, 10001)])
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of the head, the agent or a rank
        print(f"64 ranks x 10,000 lines: the largest process had {peak / 1024:.0f} MiB")
        self.assertLess(peak, 128 * 1024)

    def test_the_table_of_a_benchmark_grows_on_a_terminal(self):
        """Below the lines of the points, above how far it is; the second point waits for a file."""
        script = 'while [ $WHAT = 2 -a ! -e go ]; do sleep 0.1; done; echo "rate: $WHAT"'
        screen = Screen(self, 70, "bench", "--run-dir", "b", "--concurrent", "1", "--axis", "environment.set.WHAT=1,2", "--rate", "rate: (.*)", "--unit", "images/s",
                        "--", "bash", "-c", script)
        try:
            # While it is drawn anew, a part of it is not there.
            drawn = (r"^.*\ndlrun: 0001 .*WHAT=1: 1 images/s.*\nbash.*\n *WHAT +images/s.*\n *1 +1 .*\n *2 +(running|-).*(\n.*)*"
                     r"\npoint 2 of 2 .*left.*$")
            wait_until(lambda: re.search(drawn, "\n".join(screen.lines())), "the table is below the points and above how far it is")
            self.write("go", "")
            wait_until(lambda: os.path.exists(os.path.join(self.folder, "ended")), "the benchmark is over")
            lines = screen.lines()
            self.assertEqual(sum("WHAT" in line.split() for line in lines), 1, lines)  # what was drawn is gone
        finally:
            screen.close()
        self.none_left()

    def test_the_bar_fits_the_terminal_and_outlives_its_resizing(self):
        self.write("reports.py", REPORTS)
        screen = Screen(self, 100, "--framework", "plain", "--run-dir", "run", "--", "python3", "reports.py")
        try:
            screen.await_lines(["epoch 3/3 36 % · run 79 % · loss 0.312 · 3900 images/s · 1:02:03 left"])
            screen.resize(60)
            screen.await_lines(["epoch 3/3 36 % · run 79 % · loss 0.312 · 1:02:03 left"])
            screen.resize(30)
            screen.await_lines(["run 79 % · 1:02:03 left"])
            screen.resize(100)
            self.write("testing", "")
            screen.await_lines(["epoch 3/3 36 % · run 79 % · testing · loss 0.312 · 3900 images/s · 1:02:03 left"])
            self.write("go", "")
            wait_until(lambda: self.exists("ended"), "dlrun ended")
            self.assertEqual(len(screen.lines()), 1)
            self.assertRegex(screen.lines()[0], "^dlrun: done in .*; run directory run$")
        finally:
            screen.close()
        self.none_left()

    def test_a_bar_of_the_program_is_drawn_at_the_bottom(self):
        script = (r"printf 'Go on? '; until [ -e one ]; do sleep 0.05; done; printf '\r 10%%|#  |'; until [ -e two ]; do sleep 0.05; done; "
                  r"printf '\r100%%|###|\n'; until [ -e go ]; do sleep 0.05; done")
        screen = Screen(self, 80, "--framework", "plain", "--run-dir", "run", "--color", "never", "--", "bash", "-c", script)
        try:
            screen.await_lines(["[worker 0] Go on?"])
            self.write("one", "")
            screen.await_lines(["[worker 0]  10%|#  |"])
            self.write("two", "")
            wait_until(lambda: screen.lines()[:1] == ["[worker 0] 100%|###|"], "the line has its end")
            self.write("go", "")
            wait_until(lambda: self.exists("ended"), "dlrun ended")
        finally:
            screen.close()
        self.none_left()

    def test_what_ranks_say_changes_no_terminal_and_forges_no_line(self):
        self.write("escapes.py", ESCAPES)
        for code in ("0", "3"):
            ended, out = self.on_terminal("--color", "never", "--framework", "plain", "--run-dir", "run" + code, "--", "python3",
                                          "escapes.py", code)
            self.assertEqual(ended, int(code))
            for escape in ("\x1b]", "\x1b[2J", "\x07"):
                self.assertNotIn(escape, out)
            self.assertNotIn("\nfaked", out)
            self.assertIn("[worker 0] \x1b[31mred\x1b[0m\n", out)  # the colour ends with its line
            status = [part for part in out.split("\r") if "x\\x1b]52" in part]
            self.assertTrue(status)
            self.assertLess(max(len(part.replace("\x1b[J", "")) for part in status), 80)
            self.assertEqual(out.count("\x1b[?1049h"), 1)  # as the rank printed it, and not replayed
        self.assertIn("  | \\x1b[?1049h\n", out)

    def test_a_rank_that_floods_does_not_hold_up_the_others(self):
        # Nobody reads the console; the quiet rank has more to say than a pipe holds.
        script = ('if [ $DLRUN_RANK = 0 ]; then touch flooding; exec yes "$(printf %200s x)"; fi; until [ -e flooding ]; do sleep 0.01; done; '
                  'sleep 1; for i in {1..1500}; do printf "%200d\\n" $i; done; touch finished; sleep 1000')
        process = self.start("--framework", "plain", "--run-dir", "run", "--tasks-per-node", "2", "--set", "launch.grace=1s", "--",
                             "bash", "-c", script)
        wait_until(lambda: self.exists("finished"), "the quiet rank said all")
        process.terminate()
        process.communicate()
        self.assertEqual(process.returncode, 128 + 15)


if __name__ == "__main__":
    support.main()
