#!/usr/bin/env python3
"""dlrun doctor and launch.check on nodes with real faults: a slow network (tc), a file system without rename, a full disk, a clock
that is wrong. Each node is named, left out of the job, and not used by the next one."""
import contextlib
import json
import pathlib
import subprocess

import chain_support
import support
from configuration import HOME
from namespaces import ROOM
from ssh_test import changed
from support import DLRUN

CHAIN = """name: kept-off
framework: plain
command: [sh, -c, 'mkdir -p ckpt; [ $DLRUN_RANK = 0 ] || exit 0; n=$(ls ckpt | wc -l); touch ckpt/$n; [ $n -ge 1 ] || exit 75']
resources: {nodes: 2, tasks-per-node: 1, walltime: 2min, extra: [--nodes=3]}
launch: {check: quick}
checkpoint: {dir: ckpt}
"""
HERE = pathlib.Path(__file__).resolve().parent
HOSTNAME = ("--framework", "plain", "--", "sh", "-c", "hostname")
FULL = ["mount", "-o", "remount,size=4k", "/tmp"]
EMPTY = ["mount", "-o", "remount,size=1g", "/tmp"]


class Doctor(chain_support.Case):
    nodes = 6
    hosts = "n1,n2,n3,n4,n5,n6"

    def setUp(self):
        super().setUp()
        self.cluster.run("head", ["rm", "-rf", f"{HOME}/.local/state/dlrun"])

    def as_root(self, host, *words):
        done = self.cluster.run(host, words, user="root")
        self.assertEqual(done.returncode, 0, done.stderr)

    def doctor(self, *words, hosts=hosts):
        code, out, err = self.run_on(DLRUN, "doctor", "--hosts", hosts, "--json", *words)
        self.assertTrue(out, err)
        return code, {node["host"]: node for node in json.loads(out)["nodes"]}, err

    def job(self, *words, hosts=hosts):
        """The hosts that a job of two nodes ran on, and what was said."""
        code, out, err = self.run_on(DLRUN, "--hosts", hosts, "--nodes", "2", "--set", "launch.check=quick", *words, *HOSTNAME)
        self.assertEqual(code, 0, err)
        return sorted(line.split()[-1] for line in out.splitlines()), err

    @contextlib.contextmanager
    def faults(self):
        """n3 is slow, n4 cannot rename, n5's disk is full, n6's clock is behind."""
        for what in ("RENAME", "CLOCK"):
            subprocess.run(["gcc", "-shared", "-fPIC", "-D", what, "-o", f"{ROOM}/{what}.so", HERE / "programs/broken.c"], check=True)
        self.as_root("n3", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "2mbit", "burst", "32kbit", "latency", "400ms")
        self.as_root("n5", *FULL)
        login = f'case $(hostname) in n4) export LD_PRELOAD={ROOM}/RENAME.so;; n6) export LD_PRELOAD={ROOM}/CLOCK.so;; esac\n'
        try:
            with changed(f"{HOME}/.bashrc", login):
                yield
        finally:
            self.as_root("n3", "tc", "qdisc", "del", "dev", "eth0", "root")
            self.as_root("n5", *EMPTY)

    def bad_cable(self, one, other):
        """What `one` sends to `other` goes a way of its own, which is slow."""
        subprocess.run(["ip", "link", "add", "cable", "netns", one, "type", "veth", "peer", "name", "cable", "netns", other], check=True)
        self.addCleanup(self.as_root, one, "ip", "link", "del", "cable")
        for host in (one, other):
            self.as_root(host, "ip", "link", "set", "cable", "up")
        address = self.cluster.run(one, ["getent", "ahostsv4", other]).stdout.split()[0]
        self.as_root(one, "ip", "route", "add", f"{address}/32", "dev", "cable")
        self.as_root(one, "tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", "8mbit", "burst", "64kbit", "latency", "400ms")

    def test_good_nodes(self):
        code, nodes, err = self.doctor()
        self.assertEqual(code, 0, err)
        self.assertEqual({host: (node["state"], node["findings"]) for host, node in nodes.items()},
                         {host: ("good", []) for host in self.hosts.split(",")})
        network = nodes["n1"]["values"]["network"]
        self.assertEqual((network["tried"], network["reached_by"]), (5, 5))
        self.assertGreater(network["send"], 0)
        self.assertIn("6 good, 0 with warnings, 0 bad", err)
        self.assertNotIn("allreduce", nodes["n1"]["values"])
        self.assertEqual([path.name for path in pathlib.Path(self.folder).iterdir()], [])

    def test_nodes_with_faults_are_named_and_used_neither_by_this_job_nor_by_the_next(self):
        with self.faults():
            ran, err = self.job("--run-dir", "run")
            self.assertEqual(ran, ["n1", "n2"], err)
            self.assertRegex(err, r"n3 is left out: network: it sends ")
            self.assertRegex(err, r"n4 is left out: files: rename: Operation not permitted")
            self.assertRegex(err, r"n5 is left out: space: /tmp has \S+ \S+ free")
            self.assertRegex(err, r"n6 is left out: clock: its clock is (59m|1h)\S* behind")
        record = self.record()
        self.assertEqual([node["host"] for node in record["node_check"]["left_out"]], ["n3", "n4", "n5", "n6"])
        report = json.loads(self.read("run/doctor.json"))
        self.assertEqual((report["good"], report["bad"]), (2, 4))
        # All is mended, and they are still remembered, where there are others.
        ran, err = self.job(hosts="n3,n4,n1,n2")
        self.assertEqual(ran, ["n1", "n2"], err)
        self.assertIn("n4 is left out: files: rename: Operation not permitted", err)
        # Without others they are looked at again.
        ran, err = self.job(hosts="n3,n4,n1")
        self.assertEqual(ran, ["n3", "n4"], err)
        code, nodes, err = self.doctor(hosts="n5,n6")
        self.assertEqual(code, 0, err)
        self.assertTrue(nodes["n5"]["forgotten"].startswith("space: "), nodes["n5"])
        self.assertEqual(self.job(hosts="n5,n6,n1")[0], ["n5", "n6"])

    def test_a_node_and_a_link_that_are_slow_only_in_an_allreduce_are_named(self):
        """n2 wakes up late for each packet, which a long transfer does not mind. The cable from n5 to n6 alone is bad."""
        subprocess.run(["gcc", "-shared", "-fPIC", "-D", "WAKE", "-o", f"{ROOM}/WAKE.so", HERE / "programs/broken.c"], check=True)
        self.bad_cable("n5", "n6")
        with changed(f"{HOME}/.bashrc", f"[ $(hostname) != n2 ] || export LD_PRELOAD={ROOM}/WAKE.so\n"):
            code, nodes, err = self.doctor("--full")
        found = {host: [(finding["check"], finding["text"]) for finding in node["findings"]] for host, node in nodes.items()}
        self.assertEqual(code, 71, found)
        self.assertEqual({host for host in found if found[host]}, {"n2", "n5", "n6"}, found)
        self.assertRegex(found["n2"][0][1], r"^it slows an allreduce down to [^;]*; [^;]* is usual$")
        self.assertRegex(found["n5"][0][1], r"^the link between it and n6 slows an allreduce down to [^;]*; [^;]* is usual$")
        self.assertRegex(found["n6"][0][1], r"^the link between it and n5 slows ")
        self.assertEqual([nodes[host]["state"] for host in ("n2", "n5", "n6")], ["bad", "warning", "warning"])

    def test_too_few_good_nodes_and_a_node_that_is_down(self):
        self.as_root("n2", *FULL)
        self.cluster.crash("n3")
        try:
            code, nodes, err = self.doctor("--set", "launch.ssh.connect-timeout=5s", hosts="n1,n2,n3")
            self.assertEqual((code, nodes["n1"]["state"]), (71, "good"), err)
            self.assertRegex(nodes["n3"]["findings"][0]["text"], "Connection timed out|No route to host")
            code, out, err = self.run_on(DLRUN, "--hosts", "n1,n2", "--set", "launch.check=quick", "--run-dir", "run", *HOSTNAME)
        finally:
            self.as_root("n2", *EMPTY)
            self.cluster.boot("n3")
        self.assertEqual((code, out), (71, ""), err)
        self.assertIn("1 of 2 nodes failed the checks (launch.check), and the run needs 2 of the 1 that are left\n  n2: space: /tmp has", err)
        self.assertEqual(self.record()["exit_code"], 71)

    def test_a_bad_node_is_left_out_of_a_link_and_slurm_keeps_the_next_one_off_it(self):
        self.as_root("n2", *FULL)
        self.addCleanup(self.as_root, "n2", *EMPTY)
        chain = self.submit(CHAIN, 5)
        status = self.wait_over(chain)
        self.assertEqual((status["state"], self.ends(status)), ("done", ["again", "done"]), status)
        folders = [pathlib.Path(link["run_directory"]) for link in status["links"]]
        checked = [json.loads((folder / "record.json").read_text())["node_check"] for folder in folders]
        self.assertEqual([[node["host"] for node in one["left_out"]] for one in checked], [["n2"], []])
        nodes = [[node["host"] for node in json.loads((folder / "allocation.json").read_text())["nodes"]] for folder in folders]
        self.assertEqual((nodes[0], len(nodes[1])), (["n1", "n3"], 3))
        self.assertNotIn("n2", nodes[1])
        # As every submission of this user on this cluster, where the partition has enough other nodes.
        code, _, err = self.run_on(DLRUN, "submit", "--dry-run", "job.yaml")
        self.assertEqual(code, 0, err)
        self.assertIn("sbatch --exclude=n2 --parsable", err)
        code, _, err = self.run_on(DLRUN, "submit", "--dry-run", "--nodes", "6", "--set", "resources.extra=[]", "job.yaml")
        self.assertNotIn("--exclude", err)


if __name__ == "__main__":
    support.main()
