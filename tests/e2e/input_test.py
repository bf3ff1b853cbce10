#!/usr/bin/env python3
"""The standard input: it reaches the rank that --stdin names, whole and no faster than that one reads, and no other time is
anything of it taken."""
import hashlib
import subprocess

import support


class Input(support.Case):
    def with_input(self, text, *words):
        process = subprocess.Popen([support.DLRUN, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=self.environment, cwd=self.folder)
        self.started.append(process)
        try:
            out, err = process.communicate(text)
        except BrokenPipeError:
            out, err = process.stdout.read(), process.stderr.read()
        return process.wait(), out, err

    def test_it_reaches_the_rank_that_is_named(self):
        code, out, err = self.with_input("hello\n", "--stdin", "1", "--framework", "plain", "--tasks-per-node", "2", "--", "cat")
        self.assertEqual((code, out), (0, "[worker 1] hello\n"), err)

    def test_more_than_any_pipe_holds_comes_whole_to_a_slow_reader(self):
        text = "".join(f"line {i} of the input\n" for i in range(100000))
        code, out, err = self.with_input(text, "--stdin", "0", "--framework", "plain", "--", "bash", "-c", "sleep 0.5; sha256sum")
        self.assertEqual(code, 0, err)
        self.assertIn(hashlib.sha256(text.encode()).hexdigest(), out)

    def test_a_rank_that_reads_little_ends_as_it_wants(self):
        feed = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
        self.started.append(feed)
        done = subprocess.run([support.DLRUN, "--stdin", "0", "--framework", "plain", "--", "head", "-n", "2"], stdin=feed.stdout,
                              capture_output=True, text=True, env=self.environment, cwd=self.folder, check=False)
        feed.stdout.close()
        feed.wait()
        self.assertEqual((done.returncode, done.stdout), (0, "[worker 0] y\n[worker 0] y\n"), done.stderr)

    def test_a_debugger_is_spoken_with(self):
        code, out, err = self.with_input("p 40 + 2\nc\n", "--stdin", "0", "--framework", "plain", "--", "python3", "-c",
                                         "breakpoint()\nprint('went on')")
        self.assertEqual(code, 0, err)
        self.assertIn("42", out)
        self.assertIn("went on", out)

    def test_a_loop_keeps_its_input_and_is_told_that_no_rank_has_it(self):
        loop = f"printf 'a\\nb\\n' | while read x; do {support.IN_SHELL} --framework plain -- cat; echo took $x; done"
        done = subprocess.run(["bash", "-c", loop], capture_output=True, text=True, env=self.environment, cwd=self.folder, check=False)
        self.assertEqual(done.stdout, "took a\ntook b\n")
        self.assertEqual(done.stderr.count("the standard input is not read"), 1, done.stderr)  # b alone waits

    def test_a_rank_that_is_not_there(self):
        code, _, err = self.with_input("", "--stdin", "7", "--framework", "plain", "--", "touch", "ran")
        self.assertEqual(code, 64)
        self.assertIn("--stdin: the job has no rank 7\n  hint: its ranks are 0 to 0", err)
        code, _, err = self.with_input("", "--stdin", "first", "--framework", "plain", "--", "touch", "ran")
        self.assertEqual(code, 64)
        self.assertIn("--stdin: 'first' is not a rank", err)
        self.assertFalse(self.exists("ran"))


if __name__ == "__main__":
    support.main()
