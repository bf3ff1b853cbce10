#!/usr/bin/env python3
"""The console of a run with many ranks: folding on a terminal, the choice of ranks, many lines in bounded memory, and a rank
that floods."""
import os
import pty
import resource
import subprocess

import support
from support import wait_until


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
        self.assertIn("--tee: the job has no rank that '7' names", err)
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
