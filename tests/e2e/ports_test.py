#!/usr/bin/env python3
"""Ports of a job's roles are held from before the first rank starts; where one is taken, every rank is told of another."""
import json
import os
import socket

import support

# Listens where its address says, and tells every address.
PEER = """
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], config["cluster"]
socket.create_server(("", int(cluster[task["type"]][task["index"]].rpartition(":")[2]))).close()
print(json.dumps(cluster))
"""


def free_run(count):
    """The first of `count` ports in a row that are free now."""
    for first in range(23000, 60000, count + 1):
        held = []
        try:
            for port in range(first, first + count):
                held.append(socket.create_server(("", port)))
            return first
        except OSError:
            pass
        finally:
            for one in held:
                one.close()
    raise RuntimeError("no free ports")


class Ports(support.Case):
    def setUp(self):
        super().setUp()
        self.first = free_run(8)
        os.makedirs(os.path.join(self.folder, "frameworks"))
        self.write("frameworks/tf.yaml", "name: tf\nsummary: of the test\nextends: tensorflow-ps\nneeds: {modules: []}\nroles:\n"
                   f"  worker: {{default: tasks-per-node, port: {self.first}}}\n  ps: {{count: 1, gpus: 0, port: {self.first + 6}}}\n")
        self.write("peer.py", PEER)

    def run_job(self, *flags):
        return self.dlrun("--framework-dir", "frameworks", "--run-dir", "run", "--framework", "tf", "--tasks-per-node", "3",
                          *flags, "--", "python3", "peer.py")

    def clusters(self, out):
        return [json.loads(line.partition("] ")[2]) for line in out.splitlines()]

    def ports(self, cluster, role="worker"):
        return [int(address.rpartition(":")[2]) for address in cluster[role]]

    def test_free_ports_are_the_planned_ones(self):
        code, out, err = self.run_job()
        self.assertEqual(code, 0, err)
        self.assertEqual([self.ports(c) for c in self.clusters(out)], [[self.first, self.first + 1, self.first + 2]] * 4)
        self.assertEqual([e for e in self.events() if e["event"] == "port_taken"], [])

    def test_a_taken_port_is_stepped_over_by_all(self):
        with socket.create_server(("127.0.0.1", self.first + 1)):
            code, out, err = self.run_job()
        self.assertEqual(code, 0, err)
        self.assertEqual([self.ports(c) for c in self.clusters(out)], [[self.first, self.first + 2, self.first + 3]] * 4)
        self.assertRegex(err, rf"port {self.first + 1} on \S+ is taken by process {os.getpid()} \(\S*python3 .*\)")
        taken = [event for event in self.events() if event["event"] == "port_taken"]
        self.assertEqual([event["port"] for event in taken], [self.first + 1])
        # What was decided anew is what is written down.
        plan = json.loads(self.read("run/plan.json"))
        self.assertEqual([rank["port"] for rank in plan["ranks"]], [self.first, self.first + 2, self.first + 3, self.first + 6])

    def test_a_port_of_ipv6_alone_is_taken_as_well(self):
        with socket.socket(socket.AF_INET6) as other:
            other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("::", self.first))
            other.listen()
            code, out, err = self.run_job()
        self.assertEqual(code, 0, err)
        self.assertEqual(self.ports(self.clusters(out)[0])[0], self.first + 1)

    def test_a_port_that_the_job_names_is_not_exchanged(self):
        with socket.create_server(("127.0.0.1", self.first + 1)):
            code, out, err = self.run_job("--set", f"roles.worker.port={self.first + 1}")
        self.assertEqual((code, out), (69, ""))
        self.assertRegex(err, rf"error: .*port {self.first + 1} of role worker is in use on \S+ by process {os.getpid()} \(\S*python3")
        self.assertIn("remove roles.worker.port", err)

    def test_what_is_left_of_ended_connections_is_no_holder(self):
        with socket.create_server(("127.0.0.1", self.first)) as server:
            client = socket.create_connection(("127.0.0.1", self.first))
            served, _ = server.accept()
            served.close()  # the side that closes first keeps the port in TIME_WAIT
            client.close()
        code, out, err = self.run_job("--set", f"roles.worker.port={self.first}")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.ports(self.clusters(out)[0])[0], self.first)

    def test_two_nodes_on_one_machine_do_not_clash(self):
        self.write("allocation.json", json.dumps({"schema": "dlrun.allocation/1", "scheduler": "none", "nodes": [
            {"host": "localhost", "slots": 4}, {"host": socket.gethostname(), "slots": 4}]}))
        code, out, err = self.run_job("--allocation", "allocation.json", "--via", "local")
        self.assertEqual(code, 0, err)
        clusters = self.clusters(out)
        self.assertEqual(len(clusters), 7)
        self.assertTrue(all(cluster == clusters[0] for cluster in clusters))
        ports = self.ports(clusters[0]) + self.ports(clusters[0], "ps")
        self.assertEqual(len(set(ports)), 7, ports)


if __name__ == "__main__":
    support.main()
