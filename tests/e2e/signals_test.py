#!/usr/bin/env python3
"""Ctrl-C, SIGTERM, kill -9: whatever ends, nothing of the job survives, also not children in sessions of their own."""
import contextlib
import os
import shutil
import signal
import subprocess

import support
from support import wait_until

# A rank that made a child in a new session, and both ignore SIGHUP.
RANK = 'trap "" HUP; setsid bash -c \'trap "" HUP; touch child-$DLRUN_RANK; exec sleep 1000\' & touch rank-$DLRUN_RANK; wait; sleep 1000'


class Signals(support.Case):
    def start_ranks(self, script=RANK, *flags):
        head = self.start("--tasks-per-node", "2", *flags, "--framework", "plain", "--run-dir", "run", "--", "bash", "-c", script)
        wait_until(lambda: all(self.exists(f"{kind}-{rank}") for kind in ("rank", "child") for rank in (0, 1)) or head.poll() is not None,
                   "the ranks and their children run")
        self.assertIsNone(head.poll())
        return head

    def agent_of(self, head, name="dlrun-agent"):
        """The agent, or its reaper: ps shows different names."""
        def comm(pid):
            with open(f"/proc/{pid}/comm") as file:
                return file.read().strip()
        return next(pid for pid in self.marked() if pid != head.pid and comm(pid) == name)

    def test_one_interrupt_is_polite_and_named(self):
        head = self.start_ranks()
        head.send_signal(signal.SIGINT)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 130, err)
        self.assertIn("SIGINT (2): stopping; again to stop at once", err)
        self.assertEqual(self.record()["attempts"][0]["interrupted_by"], "SIGINT (2)")
        self.none_left()

    def test_sigterm_gives_the_ranks_time_to_save(self):
        script = ('save() { sleep 0.3; touch saved-$DLRUN_RANK; exit 75; }; trap save TERM; touch rank-$DLRUN_RANK child-$DLRUN_RANK;'
                  "while :; do sleep 0.02; done")
        head = self.start_ranks(script)
        head.send_signal(signal.SIGTERM)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 75, err)
        self.assertTrue(self.exists("saved-0") and self.exists("saved-1"))
        self.assertIn("run the same command again", err)

    def test_a_scheduler_s_warning_of_the_end_comes_twice_and_to_every_process(self):
        """As Grid Engine sends it, with SIGUSR1 before: the ranks have their grace period, and no reaper dies of it."""
        script = ('trap "sleep 0.3; touch saved-$DLRUN_RANK; exit 0" TERM; touch rank-$DLRUN_RANK child-$DLRUN_RANK;'
                  "while :; do sleep 0.02; done")
        self.environment["SGE_JOB_SPOOL_DIR"] = "/var/spool/7.1"
        head = self.start_ranks(script)
        everything = self.marked()
        self.assertGreater(len(everything), 4)
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR2):
            for pid in everything:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 140, err)
        self.assertTrue(self.exists("saved-0") and self.exists("saved-1"), err)
        self.assertIn("SIGUSR1 (10): a warning; going on", err)
        self.none_left()

    def test_a_second_interrupt_does_not_wait(self):
        script = 'trap "" TERM INT; touch rank-$DLRUN_RANK child-$DLRUN_RANK; while :; do sleep 0.02; done'
        head = self.start_ranks(script, "--set", "launch.grace=1h")
        head.send_signal(signal.SIGINT)
        wait_until(lambda: "signalled" in self.read("run/events.jsonl"), "TERM was sent")
        # One that follows within a moment is the same request; a later one is not.
        wait_until(lambda: head.poll() is not None or head.send_signal(signal.SIGINT), "it ends at once")
        self.assertEqual((head.communicate(), head.returncode)[1], 130)
        self.none_left()

    SAVES = ("trap 'sleep 0.3; touch saved-$DLRUN_RANK; exit 75' TERM; touch rank-$DLRUN_RANK child-$DLRUN_RANK;"
             "while :; do sleep 0.02; done")

    def assert_saved(self, head):
        _, err = head.communicate()
        self.assertEqual(head.returncode, 75, err)
        self.assertTrue(self.exists("saved-0") and self.exists("saved-1"), err)
        self.assertEqual([event["signal"] for event in self.events() if event["event"] == "signalled"], [signal.SIGTERM])
        self.none_left()

    def test_sigterm_to_all_sessions_of_the_first_host_is_one_stop(self):
        """As PBS's qdel: the batch script's session and the task's, in either order."""
        for order in ("head first", "agent first"):
            with self.subTest(order):
                head = self.start_ranks(self.SAVES)
                pids = [head.pid, self.agent_of(head, "dlrun-reaper"), self.agent_of(head)]
                for pid in pids if order == "head first" else reversed(pids):
                    os.kill(pid, signal.SIGTERM)
                self.assert_saved(head)
                shutil.rmtree(os.path.join(self.folder, "run"))
                for name in ("rank-0", "rank-1", "child-0", "child-1", "saved-0", "saved-1"):
                    os.unlink(os.path.join(self.folder, name))

    def test_sigterm_to_the_process_and_to_its_group_is_one_stop(self):
        """As timeout(1) sends it."""
        head = self.start_ranks(self.SAVES)
        for _ in range(3):
            head.send_signal(signal.SIGTERM)
        self.assert_saved(head)

    def test_sigterm_to_every_process_of_the_job(self):
        """As Slurm signals a job, ranks included. Whichever process dies first, no rank is reported as failed."""
        head = self.start_ranks("touch rank-$DLRUN_RANK child-$DLRUN_RANK; exec sleep 1000")
        for pid in reversed(sorted(self.marked())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 143, err)
        self.assertEqual((self.record()["reason"], self.record()["attempts"][0]["first_failure"]), ("interrupted by SIGTERM (15)", None))
        self.none_left()

    def test_every_signal_that_can_be_caught_ends_in_a_verdict(self):
        numbers = [signal.SIGXCPU, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGPWR, signal.SIGIO, signal.SIGSYS,
                   signal.SIGRTMIN, signal.SIGRTMAX]
        heads = {number: self.start("--framework", "plain", "--run-dir", f"run{number:d}", "--", "sh", "-c",
                                    f"touch up{number:d}; exec sleep 1000") for number in numbers}
        for number, head in heads.items():
            wait_until(lambda number=number: self.exists(f"up{number:d}"), "the rank runs")
            head.send_signal(number)
        for number, head in heads.items():
            _, err = head.communicate()
            self.assertEqual(head.returncode, 128 + number, err)
            self.assertIn(f"({number:d})" if number < signal.SIGRTMIN else f"signal {number:d}", self.record(f"run{number:d}")["reason"])
        self.none_left()

    def test_an_interrupt_while_a_check_of_the_job_runs(self):
        os.mkdir(os.path.join(self.folder, "adapters"))
        self.write("adapters/slow.yaml", "name: slow\nsummary: a check that takes its time\nprocess: per-rank\nchecks: [[sh, -c, 'touch checking; sleep 1000']]\n")
        head = self.start("--framework-dir", "adapters", "--framework", "slow", "--run-dir", "run", "--", "true")
        wait_until(lambda: self.exists("checking") or head.poll() is not None, "the check runs")
        head.send_signal(signal.SIGINT)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 130, err)
        self.assertEqual(self.record()["reason"], "interrupted by SIGINT (2)")

    def test_a_signal_at_the_very_beginning_leaves_a_whole_run_directory(self):
        for attempt in range(5):
            run = os.path.join(self.folder, f"run{attempt}")
            head = self.start("--framework", "plain", "--run-dir", run, "--", "sleep", "1000")
            while not os.path.exists(run) and head.poll() is None:
                pass
            head.send_signal(signal.SIGTERM)
            _, err = head.communicate()
            self.assertEqual(head.returncode, 143, err)
            self.assertEqual(self.record(run)["exit_code"], 143)
            self.assertTrue(os.path.isdir(f"{run}/nodes"))

    def known_ranks(self):
        """The ranks that the head knows of: a head that is stopped earlier writes no event of them."""
        return [event["pid"] for event in self.events() if event["event"] == "started"]

    def states(self, head):
        """How the kernel shows head and ranks: R, S or T."""
        out = []
        for pid in [head.pid] + self.known_ranks():
            with open(f"/proc/{pid}/stat") as file:
                out.append(file.read().rpartition(")")[2].split()[0])
        return out

    def test_ranks_stand_still_while_the_head_is_stopped(self):
        """By a scheduler that suspends the job (SIGSTOP), and by Ctrl-Z (SIGTSTP)."""
        for number in (signal.SIGSTOP, signal.SIGTSTP):
            with self.subTest(number):
                name = f"run{number:d}"
                head = self.start("--tasks-per-node", "2", "--framework", "plain", "--run-dir", "run", "--", "bash", "-c",
                                  f"touch {name}-$DLRUN_RANK; until [ -e go{number:d} ]; do sleep 0.02; done", preexec_fn=os.setpgrp)
                wait_until(lambda name=name: self.exists(f"{name}-0") and self.exists(f"{name}-1") and len(self.known_ranks()) == 2,
                           "the ranks run")
                head.send_signal(number)
                wait_until(lambda head=head: self.states(head) == ["T"] * 3, "head and ranks are stopped")
                self.write(f"go{number:d}", "")
                head.send_signal(signal.SIGCONT)
                _, err = head.communicate()
                self.assertEqual(head.returncode, 0, err)
                self.assertEqual([event["event"] for event in self.events() if event["event"] in ("suspended", "continued")],
                                 ["suspended", "continued"])
                shutil.rmtree(os.path.join(self.folder, "run"))

    def test_a_suspended_run_can_be_ended(self):
        head = self.start_ranks()
        wait_until(lambda: len(self.known_ranks()) == 2, "the head knows that its ranks run")
        head.send_signal(signal.SIGSTOP)
        wait_until(lambda: self.states(head) == ["T"] * 3, "head and ranks are stopped")
        head.send_signal(signal.SIGTERM)
        head.send_signal(signal.SIGCONT)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 143, err)
        self.none_left()

    def test_what_was_ignored_at_the_start_stays_ignored(self):
        head = self.start("--framework", "plain", "--run-dir", "run", "--", "bash", "-c", "touch up; while [ ! -e go ]; do sleep 0.02; done",
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_until(lambda: self.exists("up"), "the rank runs")
        head.send_signal(signal.SIGHUP)
        self.write("go", "")
        _, err = head.communicate()
        self.assertEqual(head.returncode, 0, err)

    def test_an_interrupted_rank_that_leaves_with_0_was_not_done(self):
        head = self.start_ranks('trap "exit 0" TERM; touch rank-$DLRUN_RANK child-$DLRUN_RANK; while :; do sleep 0.02; done')
        head.send_signal(signal.SIGINT)
        head.communicate()
        self.assertEqual(head.returncode, 130)

    def test_an_interrupt_is_heard_while_nobody_reads_the_output(self):
        head = self.start("--framework", "plain", "--run-dir", "run", "--", "bash", "-c", "touch up; yes")
        wait_until(lambda: self.exists("up"), "the rank runs")
        head.send_signal(signal.SIGINT)
        head.wait()
        self.assertEqual(head.returncode, 130)
        head.communicate()

    def test_children_that_the_shell_had_before_are_left_alone(self):
        script = f"sleep 1000 >/dev/null 2>&1 & echo $! > before; exec {support.IN_SHELL} --framework plain --run-dir run -- true"
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("stray process", done.stderr)
        pid = int(self.read("before"))
        self.assertIn(pid, self.marked())
        os.kill(pid, signal.SIGKILL)
        self.none_left()

    def test_kill_9_of_the_head(self):
        head = self.start_ranks()
        head.kill()
        head.communicate()
        self.none_left()

    def test_kill_9_of_the_agent(self):
        head = self.start_ranks()
        os.kill(self.agent_of(head), signal.SIGKILL)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 71, err)
        self.assertIn("the agent exited without an error message", err)
        self.none_left()

    def test_kill_9_of_the_reaper(self):
        head = self.start_ranks()
        os.kill(self.agent_of(head, "dlrun-reaper"), signal.SIGKILL)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 71, err)
        self.assertIn("its dlrun-reaper process was killed", err)
        self.none_left()

    def test_sigterm_of_the_agent_alone(self):
        """Sent by a person: the run cannot continue without its node, and the head was not signalled."""
        head = self.start_ranks()
        os.kill(self.agent_of(head, "dlrun-reaper"), signal.SIGTERM)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 71, err)
        self.assertIn("the agent was told to end by SIGTERM (15)", err)
        self.none_left()

    def test_kill_9_of_all_in_the_reaper_s_group_and_session(self):
        """As batch systems end a job. Processes that a rank has started die without a parent."""
        head = self.start_ranks()
        reaper = self.agent_of(head, "dlrun-reaper")
        session = os.getsid(reaper)
        for pid in [pid for pid in self.marked() if os.getsid(pid) == session]:
            os.kill(pid, signal.SIGKILL)
        head.wait()
        self.none_left()

    def test_kill_9_of_head_and_agent_at_once(self):
        head = self.start_ranks()
        agent = self.agent_of(head)
        head.kill()
        os.kill(agent, signal.SIGKILL)
        head.communicate()
        self.none_left()

    def test_kill_9_of_a_rank(self):
        head = self.start_ranks()
        # Events are written in the background, and so a little later.
        started = wait_until(lambda: [found for found in [[event for event in self.events() if event["event"] == "started"]]
                                      if len(found) == 2], "both are in the log of events")[0]
        os.kill(started[1]["pid"], signal.SIGKILL)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 137)
        self.assertIn("worker 1 (rank 1)", err)
        self.none_left()

    def test_an_interrupt_during_the_prolog(self):
        job = self.write("job.yaml", "framework: plain\ncommand: [touch, ran]\nenvironment: {setup: ['touch preparing; sleep 1000']}\n")
        head = self.start("--run-dir", "run", job)
        wait_until(lambda: self.exists("preparing"), "the prolog runs")
        head.send_signal(signal.SIGINT)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 130, err)
        self.assertFalse(self.exists("ran"))
        self.none_left()

    def test_nothing_stays_in_the_temporary_folder(self):
        temporary = os.path.join(self.folder, "tmp")
        os.mkdir(temporary)
        self.environment["TMPDIR"] = temporary
        head = self.start_ranks()
        head.kill()
        head.communicate()
        self.none_left()
        self.assertEqual(os.listdir(temporary), [])
        # A killed agent cannot clean up; the next one does.
        for name in ("rank-0", "rank-1", "child-0", "child-1"):
            os.unlink(os.path.join(self.folder, name))
        os.rename(os.path.join(self.folder, "run"), os.path.join(self.folder, "run1"))
        head = self.start_ranks()
        os.kill(self.agent_of(head), signal.SIGKILL)
        head.communicate()
        self.assertEqual(len(os.listdir(temporary)), 1)
        self.dlrun("--framework", "plain", "--", "true")
        self.assertEqual(os.listdir(temporary), [])


if __name__ == "__main__":
    support.main()
