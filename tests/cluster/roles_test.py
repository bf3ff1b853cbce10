#!/usr/bin/env python3
"""A job with parameter servers over four nodes: every process opens its port, talks to every other and sees the GPUs that are
its own; also where somebody else has one of the ports."""
import json
import os
import signal

import support
from cluster import wait_until
from support import DLRUN

# Opens its port as TF_CONFIG says, on the address that its peers use; calls every other task and is called by every other.
PEER = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], config["cluster"]
mine = cluster[task["type"]][task["index"]]
listener = socket.create_server((mine.rpartition(":")[0], int(mine.rpartition(":")[2])))
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
    call.sendall(b"%s%d\\n" % (task["type"].encode(), task["index"]))
heard = sorted(listener.accept()[0].makefile().readline().strip() for _ in others)
print(json.dumps({"me": task["type"] + str(task["index"]), "at": mine, "on": socket.gethostname(), "heard": heard,
                  "gpus": os.environ["CUDA_VISIBLE_DEVICES"], "cluster": cluster}), flush=True)
"""


class Roles(support.Case):
    slurm = True
    # tensorflow-ps for programs that only look like TensorFlow's.
    framework = ("--framework-dir", "frameworks", "--framework", "ps")

    def setUp(self):
        super().setUp()
        self.write("frameworks/ps.yaml", "name: ps\nsummary: of the test\nextends: tensorflow-ps\nneeds: {modules: [json]}\n")

    def job(self, *flags):
        """What each task told, by its name, of a job that ended well."""
        self.write("peer.py", PEER)
        code, out, err = self.run_on("salloc", "-Q", "-N4", "--gpus-per-node=4", DLRUN, "--run-dir", "run",
                                     *self.framework, "--gpus-per-node", "4", *flags, "--", "python3", "peer.py")
        self.assertEqual(code, 0, err)
        told = [json.loads(line.partition("] ")[2]) for line in out.splitlines()]
        tasks = {task["me"]: task for task in told}
        self.assertEqual(len(tasks), len(told))
        for task in told:
            self.assertEqual(task["heard"], sorted(set(tasks) - {task["me"]}))
            self.assertEqual(task["cluster"], told[0]["cluster"])
            self.assertEqual(task["at"].rpartition(":")[0], task["on"])
        self.err = err
        return tasks

    def test_parameter_servers_on_the_nodes_of_workers(self):
        tasks = self.job("--set", "roles.ps.count=2")
        self.assertEqual(len(tasks), 18)
        for i in range(16):
            self.assertEqual((tasks[f"worker{i}"]["on"], tasks[f"worker{i}"]["gpus"]), (f"n{i // 4 + 1}", str(i % 4)))
            self.assertEqual(tasks[f"worker{i}"]["at"], f"n{i // 4 + 1}:{2220 + i % 4}")
        self.assertEqual([(tasks[f"ps{i}"]["on"], tasks[f"ps{i}"]["gpus"]) for i in (0, 1)], [("n1", ""), ("n2", "")])
        self.assertEqual([tasks[f"ps{i}"]["at"] for i in (0, 1)], ["n1:2230", "n2:2230"])

    def test_a_parameter_server_on_a_node_of_its_own(self):
        tasks = self.job("--set", "roles.ps.count=1", "--set", "roles.ps.placement=dedicated")
        self.assertEqual(len(tasks), 13)
        homes = {tasks[f"worker{i}"]["on"] for i in range(12)}
        self.assertEqual(len(homes), 3)
        self.assertNotIn(tasks["ps0"]["on"], homes)
        self.assertEqual(tasks["ps0"]["gpus"], "")

    def listener(self, node, port):
        """Somebody else's server on a node."""
        program = f"import socket, time; s = socket.create_server(('', {port})); print('listening', flush=True); time.sleep(1000)"
        process = self.cluster.start(node, ["python3", "-c", program], user="root")
        self.assertEqual(process.stdout.readline(), "listening\n")

        def end():
            for pid, (_, words) in self.cluster.processes(node).items():
                if program in words:
                    os.kill(pid, signal.SIGKILL)
            process.communicate()
        self.addCleanup(end)
        return process

    def test_a_port_that_another_has_on_one_node(self):
        self.listener("n3", 2222)
        tasks = self.job()
        addresses = tasks["ps0"]["cluster"]["worker"]
        self.assertEqual(addresses[8:12], ["n3:2220", "n3:2221", "n3:2223", "n3:2224"])
        self.assertEqual(addresses[4:8], ["n2:2220", "n2:2221", "n2:2222", "n2:2223"])
        # Root's process: the user may know no more than whose it is.
        self.assertIn("port 2222 on n3 is taken by a process of user 0", self.err)
        events = [json.loads(line) for line in self.read("run/events.jsonl").splitlines()]
        self.assertEqual([(e["host"], e["port"]) for e in events if e["event"] == "port_taken"], [("n3", 2222)])

    def test_a_stated_port_that_another_has(self):
        self.listener("n2", 2301)
        self.write("peer.py", PEER)
        code, out, err = self.run_on("salloc", "-Q", "-N4", DLRUN, "--run-dir", "run", *self.framework,
                                     "--tasks-per-node", "2", "--set", "roles.worker.port=2300", "--", "python3", "peer.py")
        self.assertEqual((code, out), (69, ""))
        self.assertIn("port 2301 of role worker is in use on n2 by a process of user 0", err)
        wait_until(lambda: not self.cluster.strays())


if __name__ == "__main__":
    support.main()
