#!/usr/bin/env python3
"""What a run prints and writes: labelled whole lines, a log a rank, a run directory, JSON on request."""
import json
import os
import stat
import subprocess
import time

import support
from support import wait_until


class Output(support.Case):
    def test_lines_are_labelled_and_streams_kept_apart(self):
        code, out, err = self.plain("echo to out $DLRUN_RANK; echo to err $DLRUN_RANK >&2", "--tasks-per-node", "2")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(out.splitlines()), ["[worker 0] to out 0", "[worker 1] to out 1"])
        self.assertIn("[worker 1] to err 1\n", err)
        self.assertRegex(err, r"dlrun: done in .*; run directory run\n$")

    def test_each_rank_has_a_log_with_all_it_printed(self):
        self.plain("printf 'no newline at the end'", "--tasks-per-node", "2")
        for rank in (0, 1):
            self.assertEqual(self.read(f"run/logs/000{rank}-worker-{rank}.log"), "no newline at the end\n")

    def test_many_lines_of_many_ranks_are_neither_torn_nor_lost(self):
        script = 'for ((i = 0; i < 3000; ++i)); do echo "line $i of $DLRUN_RANK ' + "x" * 200 + '"; done'
        code, out, _ = self.plain(script, "--tasks-per-node", "8")
        self.assertEqual(code, 0)
        lines = out.splitlines()
        self.assertEqual(len(lines), 24000)
        for rank in range(8):
            mine = [line for line in lines if line.startswith(f"[worker {rank}] ")]
            self.assertEqual(mine, [f"[worker {rank}] line {i} of {rank} " + "x" * 200 for i in range(3000)])

    def test_lines_that_are_there_at_once_are_written_at_once_and_a_lone_one_does_not_wait(self):
        """In a pipe of packets each write is read by itself."""
        reading, writing = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
        script = "echo first; until [ -e seen ]; do sleep 0.01; done; seq 1 50000"
        process = subprocess.Popen([support.DLRUN, "--framework", "plain", "--run-dir", "run", "--quiet", "--", "bash", "-c", script], cwd=self.folder,
                                   env=self.environment, stdin=subprocess.DEVNULL, stdout=writing)
        os.close(writing)
        packets = [os.read(reading, 65536)]
        self.write("seen", "")
        while packet := os.read(reading, 65536):
            packets.append(packet)
        os.close(reading)
        self.assertEqual(process.wait(), 0)
        self.assertEqual(packets[0], b"[worker 0] first\n")
        self.assertEqual(b"".join(packets[1:]).decode().splitlines(), [f"[worker 0] {i}" for i in range(1, 50001)])
        self.assertTrue(all(packet.endswith(b"\n") for packet in packets))  # a reader sees whole lines
        self.assertLess(len(packets), 5000)

    def test_bytes_that_are_no_text_pass_through(self):
        process = self.start("--framework", "plain", "--run-dir", "run", "--", "printf", r"\xff\x00\x1b[0m\n")
        process.stdout.reconfigure(errors="surrogateescape")
        out = process.communicate()[0]
        self.assertEqual(out.encode(errors="surrogateescape"), b"[worker 0] \xff\x00\x1b[0m\n")

    def test_the_run_directory_tells_everything_and_is_private(self):
        self.plain("true", "--tasks-per-node", "2")
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.folder, "run")).st_mode), 0o700)
        names = set(os.listdir(os.path.join(self.folder, "run")))
        self.assertLessEqual({"spec.json", "allocation.json", "plan.json", "nodes", "logs", "events.jsonl", "record.json"}, names)
        record = self.record()
        self.assertEqual(record["schema"], "dlrun.record/1")
        self.assertEqual((record["exit_code"], record["reason"]), (0, "done"))
        self.assertEqual([rank["end"] for rank in record["attempts"][0]["ranks"]], ["exit code 0", "exit code 0"])
        seconds = record["attempts"][0]["seconds"]
        self.assertAlmostEqual(seconds["start"] + seconds["ranks"] + seconds["finish"], seconds["total"], places=5)
        self.assertEqual([event["event"] for event in self.events()][0], "planned")

    def test_a_diagnostic_log_is_written_where_it_is_asked_for_and_nowhere_else(self):
        self.plain("true")
        self.assertEqual(os.listdir(os.path.join(self.folder, "run/logs")), ["0000-worker-0.log"])
        self.environment["DLRUN_LOG"] = "debug"
        self.environment["API_TOKEN"] = "hunter2-of-the-log"
        code, _, err = self.dlrun("--framework", "plain", "--run-dir", "debug", "--", "bash", "-c", "echo $API_TOKEN")
        self.assertEqual(code, 0, err)
        logs = {name.split("-")[0]: self.read(f"debug/logs/{name}") for name in os.listdir(os.path.join(self.folder, "debug/logs"))}
        self.assertEqual(sorted(logs), ["0000", "agent", "head.log"])
        self.assertRegex(logs["head.log"], r'from node 0 .*"started"')
        self.assertRegex(logs["agent"], r"event LogsOpened\n.*action StartRanks\n")
        self.assertNotIn("hunter2", logs["head.log"] + logs["agent"])
        self.environment["DLRUN_LOG"] = "loud"
        code, _, err = self.dlrun("--framework", "plain", "--run-dir", "loud", "--", "true")
        self.assertEqual(code, 64)
        self.assertFalse(self.exists("loud"))
        self.assertIn("DLRUN_LOG: unknown value 'loud'", err)

    def test_lines_that_a_full_disk_does_not_take_are_in_the_logs(self):
        with open("/dev/full", "w") as full:
            process = subprocess.run([support.DLRUN, "--framework", "plain", "--run-dir", "run", "--", "echo", "hello"], cwd=self.folder,
                                     env=self.environment, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.returncode, 74, process.stderr)
        self.assertIn("dlrun: error: part of the ranks' output could not be shown: No space left on device; all of it is in run/logs\n", process.stderr)
        self.assertEqual(self.read("run/logs/0000-worker-0.log"), "hello\n")

    def test_lines_that_a_file_on_a_full_disk_does_not_take_are_in_the_logs(self):
        os.mkdir(os.path.join(self.folder, "small"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", "small"], cwd=self.folder, check=True)
        try:
            with open(os.path.join(self.folder, "small", "out"), "w") as out:
                process = subprocess.run([support.DLRUN, "--framework", "plain", "--run-dir", "run", "--", "seq", "10000"], cwd=self.folder,
                                         env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.returncode, 74, process.stderr)
            self.assertIn("could not be shown: No space left on device; all of it is in run/logs\n", process.stderr)
            self.assertEqual(self.read("run/logs/0000-worker-0.log").split(), [str(i + 1) for i in range(10000)])
        finally:
            subprocess.run(["umount", "small"], cwd=self.folder, check=True)

    def test_both_streams_in_one_file_keep_their_order(self):
        with open(os.path.join(self.folder, "out"), "w") as out:
            process = subprocess.run([support.DLRUN, "--json", "--framework", "plain", "--run-dir", "run", "--", "seq", "20000"], cwd=self.folder,
                                     env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.assertEqual(process.returncode, 0)
        lines = self.read("out").splitlines()
        self.assertEqual(lines[:20000], [f"[worker 0] {i + 1}" for i in range(20000)])
        self.assertTrue(lines[20000].startswith("dlrun: done in "), lines[20000])
        self.assertEqual(json.loads("\n".join(lines[20001:])), self.record())

    def test_json_keeps_stdout_for_the_record(self):
        code, out, err = self.plain("echo hello", "--json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out), self.record())
        self.assertIn("[worker 0] hello", err)

    def test_quiet_leaves_the_ranks_own_lines(self):
        _, out, err = self.plain("echo hello", "--quiet")
        self.assertEqual((out, err), ("[worker 0] hello\n", ""))

    def test_a_reader_that_pauses_gets_every_line_and_the_right_end(self):
        process = self.start("--framework", "plain", "--run-dir", "run", "--", "bash", "-c", "seq 120000; exit 3")
        wait_until(lambda: self.exists("run/logs/0000-worker-0.log") and self.read("run/logs/0000-worker-0.log").endswith("120000\n"),
                   "the rank wrote all")
        time.sleep(6)  # longer than the agent waits for an answer when it disconnects
        out, err = process.communicate()
        self.assertEqual(process.returncode, 3, err)
        self.assertEqual(len(out.splitlines()), 120000)

    def test_a_pipe_that_does_not_block_gets_every_line(self):
        reading, writing = os.pipe()  # as some event loops hand their children one: full is an error there, not a wait
        os.set_blocking(writing, False)
        process = subprocess.Popen([support.DLRUN, "--framework", "plain", "--quiet", "--", "seq", "60000"], stdin=subprocess.DEVNULL,
                                   stdout=writing, env=self.environment, cwd=self.folder)
        self.started.append(process)
        os.close(writing)
        time.sleep(1)  # the pipe is full long before
        with open(reading) as out:
            self.assertEqual(out.read().splitlines(), [f"[worker 0] {i}" for i in range(1, 60001)])
        self.assertEqual(process.wait(), 0)

    def test_data_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            process = subprocess.run([support.DLRUN, "allocation", "--json"], stdout=full, stderr=subprocess.PIPE, env=self.environment,
                                     cwd=self.folder, check=False)
        self.assertEqual(process.returncode, 74)
        self.assertEqual(process.stderr.count(b"dlrun: error: "), 1, process.stderr)

    def test_an_error_under_json_is_an_object_on_standard_output(self):
        for words, kind, code in ((("plan", "--json", "--no-such-flag"), "usage", 64), (("--json", "no-such.yaml"), "input", 65),
                                  (("--json", "--set", "resources.nodes=two", "--", "true"), "usage", 64)):
            with self.subTest(words):
                ended, out, err = self.dlrun(*words)
                error = json.loads(out)["error"]
                self.assertEqual((ended, error["kind"], error["exit_code"]), (code, kind, code), err)
                self.assertIn(f"dlrun: error: {error['where'] + ': ' if error['where'] else ''}{error['message']}", err)
        code, out, err = self.dlrun("plan", "no-such.yaml", "--", "--json")  # an argument of the program
        self.assertEqual((code, out), (65, ""), err)

    def test_an_answer_that_cannot_be_written_is_an_error_for_people_too(self):
        self.write("job.yaml", "framework: plain\ncommand: [echo, x]\n")
        for words in (["allocation"], ["plan", "job.yaml"], ["plan", "--explain", "job.yaml"], ["frameworks"], ["hosts", "expand", "n[1-3]"],
                      ["--help"], ["--version"], ["-q", "--", "echo", "x"]):
            with open("/dev/full", "w") as full:
                process = subprocess.run([support.DLRUN, *words], stdout=full, stderr=subprocess.PIPE, env=self.environment,
                                         cwd=self.folder, check=False, text=True)
            self.assertEqual(process.returncode, 74, (words, process.stderr))
            self.assertRegex(process.stderr, r"dlrun: error: .*No space left on device", words)
            self.assertEqual(process.stderr.count("dlrun: error:"), 1, (words, process.stderr))

    def test_a_program_that_fails_keeps_its_code_on_a_full_disk(self):
        with open("/dev/full", "w") as full:
            process = subprocess.run([support.DLRUN, "--framework", "plain", "--", "bash", "-c", "echo x; exit 3"], cwd=self.folder,
                                     env=self.environment, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.returncode, 3, process.stderr)

    def test_colours_come_when_asked_and_not_into_pipes(self):
        self.assertNotIn("\033", "".join(self.plain("echo a")[1:]))
        self.assertIn("\033[", self.dlrun("--color", "always", "--framework", "plain", "--", "echo", "a")[1])

    def test_a_closed_stdout_does_not_stop_the_job(self):
        code, _, err = self.dlrun("--framework", "plain", "--run-dir", "run", "--", "bash", "-c",
                                  "echo start; sleep 0.3; for i in {1..2000}; do echo $i; done; touch finished",
                                  preexec_fn=lambda: os.close(1))
        self.assertEqual(code, 0, err)
        self.assertTrue(self.exists("finished"))

    def test_arguments_arrive_byte_for_byte(self):
        words = ["a b", "it's", '"', "$HOME", "*", "", "-n", "new\nline", "{{rank.index}}"]
        code, out, _ = self.dlrun("--framework", "plain", "--quiet", "--", "python3", "-c", "import sys; print(sys.argv[1:])", *words)
        self.assertEqual((code, out), (0, f"[worker 0] {words!r}\n"))


if __name__ == "__main__":
    support.main()
