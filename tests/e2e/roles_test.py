#!/usr/bin/env python3
"""Jobs with roles, run for real: ports, peers and GPUs as planned; worlds whose ranks do not lie side by side on a node;
frameworks that start their processes by themselves."""
import json
import os
import socket

import support

MPI = os.path.join(os.environ["DLRUN_BIN"], "..", "tests", "unit", "mpi", "mpi-program-")

# Listens where TF_CONFIG says, calls every other task, and is called by every other one.
PEER = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], config["cluster"]
mine = cluster[task["type"]][task["index"]]
listener = socket.create_server(("localhost", int(mine.rpartition(":")[2])))
others = [a for role in cluster.values() for a in role if a != mine]
calls = []
for address in others:
    host, _, port = address.rpartition(":")
    while True:
        try:
            calls.append(socket.create_connection((host, int(port))))
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
for call in calls:
    call.sendall(f"{task['type']}{task['index']}\\n".encode())
heard = sorted(listener.accept()[0].makefile().readline().strip() for _ in others)
print(f"{task['type']}{task['index']} heard {' '.join(heard)}; GPUs '{os.environ['CUDA_VISIBLE_DEVICES']}'")
"""


def free_port():
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


class Roles(support.Case):
    def allocation(self, hosts, gpus=None):
        self.write("allocation.json", json.dumps({
            "schema": "dlrun.allocation/1", "scheduler": "none",
            "nodes": [{"host": host, "slots": 4, **({"gpus": gpus} if gpus else {})} for host in hosts]}))

    def adapter(self, name, text):
        os.makedirs(os.path.join(self.folder, "frameworks"), exist_ok=True)
        self.write(f"frameworks/{name}.yaml", f"name: {name}\nsummary: of the test\n{text}")

    def run_job(self, framework, *words):
        return self.dlrun("--allocation", "allocation.json", "--via", "local", "--framework-dir", "frameworks", "--run-dir",
                          "run", "--framework", framework, *words)

    def test_workers_and_a_parameter_server_find_each_other(self):
        self.allocation(["localhost"], ["0", "1"])
        self.adapter("tf", "extends: tensorflow-ps\nneeds: {modules: [json]}\nroles:\n"
                     f"  worker: {{default: tasks-per-node, port: {free_port()}}}\n"
                     f"  ps: {{count: 1, gpus: 0, port: {free_port()}}}\n")
        self.write("peer.py", PEER)
        code, out, err = self.run_job("tf", "--gpus-per-node", "2", "--", "python3", "peer.py")
        self.assertEqual(code, 0, err)
        for line in ("worker0 heard ps0 worker1; GPUs '0'", "worker1 heard ps0 worker0; GPUs '1'",
                     "ps0 heard worker0 worker1; GPUs ''"):
            self.assertIn(line, out)

    def test_an_mpi_world_whose_nodes_have_ranks_far_apart(self):
        self.environment["OMPI_MCA_btl_tcp_if_include"] = "lo"  # between pretend nodes
        self.allocation(["a1", "a2", "a3"])
        self.adapter("spread", "mpi: auto\nroles: {worker: {default: tasks-per-node}, ps: {count: 3}}\n")
        for flavour in ("openmpi", "mpich"):
            with self.subTest(flavour):
                code, out, err = self.dlrun("--allocation", "allocation.json", "--via", "local", "--framework-dir",
                                            "frameworks", "--framework", "spread", "--tasks-per-node", "2", "--",
                                            MPI + flavour)
                self.assertEqual(code, 0, err)
                for rank in range(9):
                    self.assertIn(f"rank {rank} of 9, sum 45, on this node 3\n", out)

    def test_a_launcher_of_its_own_starts_once_and_one_a_node_on_each(self):
        self.allocation(["a1", "a2"])
        self.adapter("once", "process: per-job\nfiles: {hosts: \"{{hostfile.openmpi}}\"}\n"
                     "prefix: [cat, \"{{run.directory}}/hosts\"]\n")
        code, out, err = self.run_job("once", "--tasks-per-node", "3", "--", "/dev/null")
        self.assertEqual(code, 0, err)
        self.assertEqual([line.rpartition("] ")[2] for line in out.splitlines()], ["a1 slots=3", "a2 slots=3"])

        self.adapter("each", "process: per-node\nprefix: [echo, \"{{rank.node}} starts {{node.tasks}} of {{task.count}}\"]\n")
        code, out, err = self.dlrun("--allocation", "allocation.json", "--via", "local", "--framework-dir", "frameworks",
                                    "--framework", "each", "--tasks-per-node", "3", "--", "x")
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(line.rpartition("] ")[2] for line in out.splitlines()),
                         ["0 starts 3 of 6 x", "1 starts 3 of 6 x"])

    def test_a_program_that_is_needed_and_not_there_ends_the_job_before_any_rank(self):
        self.allocation(["a1"])
        self.adapter("needy", "needs: {programs: [sh, no-such-program-here]}\n")
        code, out, err = self.run_job("needy", "--", "echo", "started")
        self.assertNotEqual(code, 0)
        self.assertNotIn("started", out)
        self.assertIn("no-such-program-here", out + err)


if __name__ == "__main__":
    support.main()
