#!/usr/bin/env python3
"""Plans of several nodes, each emulated by an agent on this machine (--via local): labels, shapes, MPI worlds, failures."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading

import support

MPI = os.path.join(os.environ["DLRUN_BIN"], "..", "tests", "unit", "mpi", "mpi-program-")


class Nodes(support.Case):
    def setUp(self):
        super().setUp()
        self.environment["OMPI_MCA_btl_tcp_if_include"] = "lo"  # Open MPI 5 finds no way between pretend nodes otherwise
        self.write("three.json", json.dumps({"schema": "dlrun.allocation/1", "scheduler": "none",
                                             "nodes": [{"host": f"a{i}", "slots": 2} for i in (1, 2, 3)]}))

    def many(self, *words):
        return self.dlrun("--allocation", "three.json", "--via", "local", "--tasks-per-node", "2", "--run-dir", "run", *words)

    def test_each_node_has_its_ranks_and_its_name_in_the_labels(self):
        code, out, err = self.many("--framework", "plain", "--", "sh", "-c", "echo node $DLRUN_NODE of $DLRUN_NODES")
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"[worker {rank} a{rank // 2 + 1}] node {rank // 2} of 3" for rank in range(6)])
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "run/nodes"))), ["0001-a1.sh", "0002-a2.sh", "0003-a3.sh"])

    def test_nodes_tell_their_processors_for_the_threads_that_were_measured_on_such(self):
        """No node is this machine by its name, so that only what the agents tell can be known."""
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
        cores = len(os.sched_getaffinity(0))
        self.environment["XDG_STATE_HOME"] = os.path.join(self.folder, "state")
        self.environment.pop("OMP_NUM_THREADS", None)
        os.makedirs(os.path.join(self.folder, "state/dlrun/threads"))
        for name, threads in ((model, 77), ("another", 88)):
            self.write(f"state/dlrun/threads/{len(name)}.json", json.dumps({"schema": "dlrun.threads/1", "cpu": name, "threads": {str(cores): threads}}))
        code, out, err = self.dlrun("--allocation", "three.json", "--via", "local", "--tasks-per-node", "1", "--framework", "plain",
                                    "--", "sh", "-c", "echo threads $OMP_NUM_THREADS")
        self.assertEqual((code, out.count("threads 77\n")), (0, 3), out + err)

    def test_an_mpi_world_over_all_nodes_of_each_flavour(self):
        for flavour in ("openmpi", "mpich"):
            with self.subTest(flavour):
                code, out, err = self.dlrun("--allocation", "three.json", "--via", "local", "--tasks-per-node", "2",
                                            "--framework", "mpi", "--", MPI + flavour)
                self.assertEqual(code, 0, err)
                for rank in range(6):
                    self.assertIn(f"rank {rank} of 6, sum 21, on this node 2\n", out)

    def through_the_tree(self, flavour, *words):
        """Seven nodes: the first is above 1, 3, 5 and 6, and two of these have one below them."""
        self.write("seven.json", json.dumps({"schema": "dlrun.allocation/1", "scheduler": "none",
                                             "nodes": [{"host": f"a{i}", "slots": 1} for i in range(1, 8)]}))
        self.environment["DLRUN_LOG"] = "debug"
        run = f"run-{flavour}"
        code, out, err = self.dlrun("--allocation", "seven.json", "--via", "local", "--run-dir", run, *words, "--framework", "mpi", "--",
                                    MPI + flavour)
        self.assertEqual(code, 0, err)
        for rank in range(7):
            self.assertIn(f"rank {rank} of 7, sum 28, on this node 1\n", out)
        names = sorted(name for name in os.listdir(os.path.join(self.folder, run, "logs")) if name.startswith("agent-"))
        self.assertEqual(len(names), 7)
        return err, self.read(f"{run}/logs/head.log"), [self.read(f"{run}/logs/{name}") for name in names]

    def test_collectives_go_through_the_tree_of_agents_where_the_job_wants_it(self):
        for flavour in ("openmpi", "mpich"):
            with self.subTest(flavour):
                err, head, agents = self.through_the_tree(flavour, "--set", "launch.relay=on")
                self.assertNotIn("launch.relay", err)
                self.assertNotIn("allgather", head)
                self.assertNotIn("ParentSaid", agents[0])
                self.assertIn("ChildSaid", agents[0])
                for agent in agents[1:]:
                    self.assertIn("ParentSaid", agent)

    def test_the_head_carries_what_agents_cannot_send_each_other(self):
        self.environment.update(LD_PRELOAD=os.environ["E2E_SHIMS"], DLRUN_TEST_SHIM="firewall")
        err, head, agents = self.through_the_tree("mpich", "--set", "launch.relay=on")
        self.assertEqual(err.count("what its MPI exchanges goes through dlrun (launch.relay)"), 1, err)
        self.assertIn("does not answer at port", err)
        self.assertEqual(self.read("run-mpich/events.jsonl").count("no_relay_parent"), 6)
        self.assertIn("subtree_allgather", head)
        self.assertIn("child_allgather", agents[0])

    def test_a_failure_on_one_node_ends_the_others(self):
        code, _, err = self.many("--framework", "plain", "--", "sh", "-c", "[ $DLRUN_RANK = 4 ] && exit 9; setsid sleep 1000 & sleep 1000")
        self.assertEqual(code, 9)
        self.assertIn("worker 4 (rank 4) on a3: exit code 9", err)
        self.none_left()

    def test_a_lost_node_is_replaced_by_a_spare(self):
        script = 'echo $PPID >agent-$DLRUN_ATTEMPT-$DLRUN_RANK; if [ $DLRUN_ATTEMPT = 1 ]; then echo running; touch running-$DLRUN_RANK; sleep 1000; fi; echo attempt $DLRUN_ATTEMPT on $DLRUN_NODE'
        self.environment["XDG_STATE_HOME"] = os.path.join(self.folder, "state")
        process = self.start("--allocation", "three.json", "--via", "local", "--nodes", "2", "--retries", "2", "--run-dir", "run",
                             "--set", "launch.check=quick", "--framework", "plain", "--", "sh", "-c", script)
        support.wait_until(lambda: self.exists("running-0") and self.exists("running-1") and
                           sum(event["event"] == "started" for event in self.events()) == 2, "both ranks run, and have said so")
        rank = next(event["pid"] for event in self.events() if event["event"] == "started" and event["host"] == "a1")
        with open(f"/proc/{rank}/stat") as file:
            agent = int(file.read().rpartition(")")[2].split()[1])
        os.kill(agent, signal.SIGKILL)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("attempt 2 of 3 without a1", err)
        self.assertEqual(sorted(out.splitlines())[-2:], ["[worker 1 a2] running", "[worker 1 a3] attempt 2 on 1"])
        record = self.record()
        self.assertEqual([attempt["exit_code"] for attempt in record["attempts"]], [71, 0])
        self.assertEqual([rank["host"] for rank in record["attempts"][1]["ranks"]], ["a2", "a3"])
        self.assertTrue(self.exists("run/attempts/1/plan.json"))
        lost, stays, of_a2, of_a3 = (self.read(f"agent-{attempt}-{rank}") for attempt in (1, 2) for rank in (0, 1))
        self.assertEqual(of_a2, stays, "the agent of a2 serves both attempts")
        self.assertNotIn(of_a3, (lost, stays))
        self.assertEqual([event["host"] for event in self.events() if event["event"] == "agent_kept"], ["a2"])
        # As launch.check remembers nodes that failed its checks; it found none here.
        self.assertEqual(record["node_check"]["left_out"], [])
        self.assertEqual(os.listdir(os.path.join(self.folder, "state/dlrun/bad-nodes/none")), ["a1.json"])
        self.none_left()

    def test_agents_serve_pmix_to_one_attempt_after_another(self):
        """A rank fails after MPI_Finalize first, and then while the others wait for it in MPI_Init."""
        script = 'me=agent-$DLRUN_ATTEMPT-$DLRUN_RANK; echo $PPID >$me.new; mv $me.new $me; case $DLRUN_ATTEMPT-$DLRUN_RANK in 2-5) exit 3; esac; ' \
                 '"$0" || exit 4; case $DLRUN_ATTEMPT-$DLRUN_RANK in 1-5) exit 3; esac'
        code, out, err = self.many("--retries", "2", "--mpi", "pmix", "--framework", "mpi", "--", "sh", "-c", script, MPI + "openmpi")
        self.assertEqual(code, 0, err)
        for rank in range(6):
            self.assertIn(f"rank {rank} of 6, sum 21, on this node 2\n", out)
        self.assertEqual([attempt["exit_code"] for attempt in self.record()["attempts"]], [3, 3, 0])
        for rank in range(6):  # one may be killed in the second attempt before it has told its agent
            names = [name for name in (f"agent-{attempt}-{rank}" for attempt in (1, 2, 3)) if self.exists(name)]
            self.assertGreaterEqual(len(names), 2)
            self.assertEqual(len(set(map(self.read, names))), 1, f"the agent of rank {rank} serves all attempts")
        self.assertEqual(sorted(event["host"] for event in self.events() if event["event"] == "agent_kept"), ["a1", "a1", "a2", "a2", "a3", "a3"])
        self.none_left()

    def between_attempts(self, order):
        """Both ranks fail in the first attempt; `order` runs once as a check of the second, when agents wait for it."""
        self.write("gap.yaml", "name: gap\nsummary: s\nchecks: [[sh, gap.sh]]\n")
        self.write("gap.sh", f"test -e agent-1-0 || exit 0\nmkdir came || exit 0\n{order}\n")
        script = "echo $PPID >agent-$DLRUN_ATTEMPT-$DLRUN_RANK.new; mv agent-$DLRUN_ATTEMPT-$DLRUN_RANK.new agent-$DLRUN_ATTEMPT-$DLRUN_RANK; " \
                 "[ $DLRUN_ATTEMPT = 2 ] || { until [ -e agent-1-0 -a -e agent-1-1 ]; do sleep 0.1; done; exit 3; }"
        return self.dlrun("--allocation", "three.json", "--via", "local", "--nodes", "2", "--retries", "1", "--run-dir", "run",
                          "--framework-dir", self.folder, "--framework", "gap", "--", "sh", "-c", script)

    def test_an_agent_that_ends_between_two_attempts_is_started_anew(self):
        code, _, err = self.between_attempts("agent=$(cat agent-1-0); kill -9 $agent; while kill -0 $agent 2>/dev/null; do sleep 0.1; done")
        self.assertEqual(code, 0, err)
        self.assertEqual([event["host"] for event in self.events() if event["event"] == "agent_kept"], ["a2"])
        self.assertNotEqual(self.read("agent-1-0"), self.read("agent-2-0"))
        self.assertEqual(self.read("agent-1-1"), self.read("agent-2-1"))
        self.none_left()

    def test_agents_end_with_a_run_that_is_stopped_or_killed_between_two_attempts(self):
        for name, code in (("INT", 130), ("TERM", 143), ("KILL", -9)):
            with self.subTest(name):
                ended, _, err = self.between_attempts(f"kill -{name} $PPID")
                self.assertEqual(ended, code, err)
                self.assertFalse(self.exists("agent-2-0"))
                self.none_left()
                for path in ("came", "run", "agent-1-0", "agent-1-1"):
                    (shutil.rmtree if os.path.isdir(f"{self.folder}/{path}") else os.remove)(f"{self.folder}/{path}")

    def test_a_node_whose_ranks_fail_is_tried_again_where_there_is_no_spare(self):
        code, _, err = self.many("--retries", "2", "--framework", "plain", "--", "sh", "-c", "[ $DLRUN_RANK = 2 ] && exit 3; sleep 1000")
        self.assertEqual(code, 3, err)
        self.assertEqual(len(self.record()["attempts"]), 3)
        self.assertNotIn("without", err)

    def test_what_is_odd_about_the_allocation_is_said_where_it_is_used(self):
        self.write("hosts", "localhost slots=1\nlocalhost slots=1\n")
        for words in (("plan",), ("run", "--run-dir", "run")):
            code, _, err = self.dlrun(*words, "--hostfile", "hosts", "--framework", "plain", "--", "true")
            self.assertEqual(code, 0, err)
            self.assertIn("dlrun: warning: host localhost is listed 2 times (lines 1, 2): its counts add up to 2 slots\n", err)

    def test_slots_that_were_asked_for_are_ranks(self):
        self.write("hosts", "a1 slots=1\na2 slots=2\n")
        words = ("--hostfile", "hosts", "--via", "local", "--quiet", "--framework", "plain", "--", "sh", "-c", "echo $DLRUN_LOCAL_SIZE")
        code, out, err = self.dlrun(*words)
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["[worker 0 a1] 1", "[worker 1 a2] 2", "[worker 2 a2] 2"])
        code, _, err = self.dlrun("--tasks-per-node", "2", *words)
        self.assertEqual(code, 66, err)
        self.assertIn("the job asks for 2 tasks per node, but fewer slots were requested on 1 of 2 nodes\n  a1 has 1 slot\n", err)

    def test_no_node_is_bad_for_the_name_of_the_folder_that_is_checked(self):
        odd = os.path.join(self.folder, "odd\udcff")
        os.mkdir(odd)
        code, out, err = self.dlrun("doctor", "--dir", odd)
        self.assertEqual((code, out), (64, ""), err)
        self.assertIn("not UTF-8", err)
        os.mkdir(os.path.join(self.folder, "red\x1b[31m"))
        code, out, err = self.dlrun("doctor", "--dir", os.path.join(self.folder, "red\x1b[31m"))
        self.assertNotIn("\x1b", out)

    def test_the_doctor_waits_half_a_minute_for_a_server_that_turns_callers_away(self):
        def turn_away(server):
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].close()

        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=turn_away, args=(server,), daemon=True).start()
            code, out, err = self.dlrun("doctor", "--json", "--hosts", "127.0.0.1", "--via", "ssh", "--set", f"launch.ssh.port={server.getsockname()[1]}")
            server.shutdown(socket.SHUT_RDWR)
        self.assertEqual(code, 71, out + err)
        report = json.loads(out)
        self.assertIn("accepts no more connections", out)
        self.assertLess(report["seconds"], 100)  # a job would wait for 120 s

    def test_this_machine_by_any_of_its_names_and_addresses_needs_no_ssh(self):
        """By ssh none of them would answer: nobody listens at that port."""
        own = [each["local"] for link in json.loads(subprocess.run(["ip", "-j", "address"], check=True, capture_output=True, text=True).stdout)
               for each in link["addr_info"] if each.get("scope") == "global"]

        def on(host):
            return self.dlrun("--hosts", f"[{host}]" if ":" in host else host, "--set", "launch.ssh={port: 9, connect-timeout: 2s}",
                              "--framework", "plain", "--", "echo", "here")

        for host in ["localhost", "127.0.0.1", "127.0.0.2", "::1", os.uname().nodename, *own]:
            with self.subTest(host):
                code, out, err = on(host)
                self.assertEqual((code, out), (0, "[worker 0] here\n"), err)
        code, _, err = on("192.0.2.7")
        self.assertEqual(code, 69, err)
        self.assertIn("192.0.2.7 cannot be reached by ssh", err)

    def test_a_way_that_is_none_is_refused(self):
        code, _, err = self.dlrun("--allocation", "three.json", "--via", "loca", "--framework", "plain", "--", "true")
        self.assertEqual(code, 64)
        self.assertIn("did you mean 'local'?", err)


if __name__ == "__main__":
    support.main()
