#!/usr/bin/env python3
"""Section `stage` of a job file: files, folders and archives are read once, reach every node through the chain of agents, are what
started ranks find at the variable, and are gone afterwards, however the run ended."""
import json
import os
import pathlib
import signal

import support
from cluster import wait_until
from namespaces import ROOM
from support import DLRUN

HOSTS = ("n1", "n2", "n3", "n4")
PROJECT, LOCAL = f"{ROOM}/project", f"{ROOM}/local"
LEFT = f"ls -d /tmp/dlrun-stage* /dev/shm/dlrun-stage* {LOCAL}/* 2>/dev/null"


class StageIn(support.Case):
    def setUp(self):
        super().setUp()
        for host in HOSTS:  # the first node alone sees the source, and each has a disk of its own
            self.cluster.run(host, ["sh", "-c", f"mkdir -p {PROJECT} {LOCAL} && mount -t tmpfs tmpfs {PROJECT} && mount -t tmpfs -o mode=1777 tmpfs {LOCAL}"], user="root")
        self.on_first(f"mkdir -p '{PROJECT}/set/a b/empty' && cd {PROJECT} && head -c 3000000 /dev/urandom > set/large && ln -s large set/link && "
                      "echo one > words && tar -czf set.tar.gz set && chmod -R a+rX .")

    def tearDown(self):
        super().tearDown()
        wait_until(lambda: not any(self.left(host) for host in HOSTS))
        for host in HOSTS:
            self.cluster.run(host, ["umount", LOCAL, PROJECT], user="root")

    def on_first(self, line):
        done = self.cluster.run("n1", ["sh", "-c", line], user="root")
        self.assertEqual(done.returncode, 0, done.stderr)

    def left(self, host):
        return [line for line in self.cluster.run(host, ["sh", "-c", LEFT]).stdout.split() if "-kept-" not in line]

    def job(self, stage, command, more=""):
        self.write("job.yaml", f"framework: plain\nstage: {json.dumps(stage)}\ncommand: {json.dumps(command)}\n{more}")

    def words(self, run="run"):
        return (DLRUN, "--via", "ssh", "--hosts", ",".join(HOSTS), "--run-dir", run, "job.yaml")

    def events(self, name, run="run"):
        return [event for event in map(json.loads, self.read(f"{run}/events.jsonl").splitlines()) if event["event"] == name]

    def test_ranks_find_files_folders_and_archives_on_every_node(self):
        sums = self.cluster.run("n1", ["md5sum", f"{PROJECT}/set/large"]).stdout.split()[0]
        self.job([{"from": f"{PROJECT}/words"}, {"from": f"{PROJECT}/set", "to": LOCAL}, {"from": f"{PROJECT}/set.tar.gz", "to": "shm", "unpack": True, "as": "un"}],
                 ["sh", "-c", "cat $DLRUN_STAGE/words && md5sum < $DLRUN_STAGE_SET/large && md5sum < $DLRUN_STAGE/un/set/link && ls -d \"$DLRUN_STAGE/set/a b/empty\" && "
                              "readlink -f $1 $DLRUN_STAGE_UN | sed 's/-run-.*//' && ls " + PROJECT + " | wc -l", "sh", "$DLRUN_STAGE/set"])
        code, out, err = self.run_on(*self.words())
        self.assertEqual(code, 0, err)
        folder = json.loads(self.read("run/plan.json"))["stage"]["folder"]
        for rank, host in enumerate(HOSTS):
            lines = [line.partition("] ")[2] for line in out.splitlines() if line.startswith(f"[worker {rank} {host}]")]
            uid = lines[4].split("-")[2]
            self.assertEqual(lines, ["one", f"{sums}  -", f"{sums}  -", f"{folder}/set/a b/empty", f"{LOCAL}/dlrun-stage-{uid}-{host}",
                                     f"/dev/shm/dlrun-stage-{uid}-{host}", "3" if host == "n1" else "0"])
        self.assertEqual(len(self.events("staged")), 4)
        self.assertGreater(self.events("all_staged")[0]["bytes"], 6_000_000)
        self.assertGreater(self.record()["time"]["staging"], 0)
        self.assertEqual(self.record()["attempts"][0]["staged_bytes"], self.events("all_staged")[0]["bytes"])

    def test_the_checks_of_the_training_find_its_data_where_it_is_staged(self):
        self.on_first(f"cd {PROJECT} && python3 - <<'E'\nimport os, struct\nos.makedirs('mnist', exist_ok=True)\n"
                      "for part in ('train', 't10k'):\n"
                      "    open(f'mnist/{part}-images-idx3-ubyte', 'wb').write(struct.pack('>IIII', 2051, 64, 28, 28) + os.urandom(64 * 784))\n"
                      "    open(f'mnist/{part}-labels-idx1-ubyte', 'wb').write(struct.pack('>II', 2049, 64) + bytes(i % 10 for i in range(64)))\nE\n"
                      "chmod -R a+rX .")
        self.write("job.yaml", "framework: builtin\nresources: {nodes: 4, tasks-per-node: 1, cpus-per-task: 1}\nstage: [{from: " + f"{PROJECT}/mnist, to: {LOCAL}" + "}]\n"
                               "train: {model: mnist-cnn, data: {format: idx, dir: $DLRUN_STAGE/mnist}, batch: 4, epochs: 1}\n")
        code, _, err = self.run_on(*self.words())
        self.assertEqual(code, 0, err)
        self.assertEqual(self.record()["result"]["steps"], 4)

    def test_a_reused_copy_is_not_read_again_until_its_source_changes(self):
        self.job([{"from": f"{PROJECT}/set", "to": LOCAL, "reuse": True}], ["sh", "-c", "cat $DLRUN_STAGE/set/new 2>/dev/null || echo old"])
        for run, copied in (("first", 1), ("second", 0)):
            code, _, err = self.run_on(*self.words(run))
            self.assertEqual(code, 0, err)
            self.assertEqual([event["copied"] for event in self.events("staged", run)], [copied] * 4)
        self.assertEqual(self.events("all_staged", "second")[0]["bytes"], 0)
        self.on_first(f"echo new > {PROJECT}/set/new && chmod a+r {PROJECT}/set/new")
        code, out, err = self.run_on(*self.words("third"))
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("new"), 4)
        for host in HOSTS:
            self.assertEqual(len(self.cluster.run(host, ["sh", "-c", f"ls -d {LOCAL}/*-kept-*"]).stdout.split()), 1)

    def test_what_cannot_be_staged_names_host_and_file_and_leaves_nothing(self):
        self.job([{"from": f"{PROJECT}/nowhere"}], ["true"])
        code, _, err = self.run_on(*self.words("missing"))
        self.assertEqual(code, 69, err)
        self.assertIn(f"n1: {PROJECT}/nowhere cannot be staged: No such file or directory", err)
        self.cluster.run("n3", ["mount", "-t", "tmpfs", "-o", "size=1m,mode=1777", "tmpfs", LOCAL], user="root")
        try:
            self.job([{"from": f"{PROJECT}/set.tar.gz", "to": LOCAL, "unpack": True, "as": "un"}, {"from": f"{PROJECT}/set", "to": LOCAL}], ["true"])
            code, _, err = self.run_on(*self.words("full"))
            self.assertEqual(code, 74, err)
            self.assertRegex(err, r"n3: .*(needs 2.9 MiB in |No space left|no space left)")
            wait_until(lambda: not any(self.left(host) for host in HOSTS))
        finally:
            self.nothing_left()
            self.cluster.run("n3", ["umount", LOCAL], user="root")

    def running(self, launch="grace: 1s"):
        self.job([{"from": f"{PROJECT}/set", "to": LOCAL}], ["sh", "-c", "echo on; exec sleep 1000"], f"launch: {{{launch}}}\n")
        process = self.start(*self.words())
        for _ in HOSTS:
            line = process.stdout.readline()
            if not line:
                self.fail("it ended too early: " + process.stderr.read())
        for host in HOSTS:
            self.assertEqual(len(self.left(host)), 2)
        return process

    def kill(self, host, begins, number=signal.SIGKILL):
        for pid, (_, words) in self.cluster.processes(host).items():
            if begins(words):
                os.kill(pid, number)

    def test_nothing_is_left_after_the_head_was_killed(self):
        process = self.running()
        self.kill("head", lambda words: words.startswith(DLRUN))
        process.communicate()
        self.nothing_left()

    def test_nothing_is_left_after_an_agent_was_killed(self):
        process = self.running()
        agents = [pid for pid, (_, words) in self.cluster.processes("n2").items() if "dlrun-agent" in words]
        newest = max(agents, key=lambda pid: int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]))
        os.kill(newest, signal.SIGKILL)  # the agent is the reaper's child
        _, err = process.communicate()
        self.assertEqual(process.returncode, 71, err)

    def test_nothing_is_left_on_a_node_that_was_cut_off(self):
        process = self.running("grace: 1s, lost-after: 4s")
        self.cluster.cut("n3")
        try:
            _, err = process.communicate()
            self.assertEqual(process.returncode, 71, err)
            self.assertIn("n3", err)
            wait_until(lambda: not self.left("n3"))
        finally:
            self.cluster.mend("n3")

    def test_nothing_is_left_after_a_failure_or_a_cancellation(self):
        self.job([{"from": f"{PROJECT}/set", "to": LOCAL}], ["sh", "-c", "exit 3"])
        code, _, err = self.run_on(*self.words("failed"))
        self.assertEqual(code, 3, err)
        wait_until(lambda: not any(self.left(host) for host in HOSTS))
        process = self.running()
        self.kill("head", lambda words: words.startswith(DLRUN), signal.SIGTERM)
        process.communicate()


if __name__ == "__main__":
    support.main()
