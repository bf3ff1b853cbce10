#!/usr/bin/env python3
"""Somebody else's framework over four nodes: real ones where Debian has them (PyTorch, Dask, mpi4py), else programs that read
what the framework would read and check it (TensorFlow's flags and TF_CONFIG, DMLC_*, Horovod over Gloo)."""
import os
import re
import shutil
import signal

import support
from cluster import wait_until
from support import DLRUN, SOURCE

PROGRAMS = f"{SOURCE}/tests/cluster/programs"
PYTHON = "/usr/bin/python3"  # Debian's, which has the packages


class Frameworks(support.Case):
    slurm = True

    def job(self, framework, *words, nodes=4, flags=(), gres=()):
        return self.run_on("salloc", "-Q", "--mem=2000", f"-N{nodes}", *gres, DLRUN, "--quiet", "--run-dir", "run", "--framework-dir",
                           "frameworks", "--framework", framework, *flags, "--", *words)

    def program(self, name, *words):
        return PYTHON, f"{PROGRAMS}/{name}.py", *words

    def adapter(self, name, text):
        os.makedirs(f"{self.folder}/frameworks", exist_ok=True)
        self.write(f"frameworks/{name}.yaml", f"name: {name}\nsummary: of the test\n{text}")

    def lines(self, out):
        """Without the labels."""
        return sorted(line.partition("] ")[2] for line in out.splitlines())

    def no_rank_started(self):
        self.assertNotIn('"event":"started"', self.read("run/events.jsonl").replace('": "', '":"'))

    # frameworks that are here

    def train(self, framework, tasks, run, more, nodes):
        return self.start("salloc", "-Q", "--mem=2000", f"-N{nodes}", DLRUN, "--run-dir", run, "--framework", framework, "--tasks-per-node",
                          str(tasks), "--set", "launch.grace=2s", "--", *self.program("ddp", f"{framework}.pt", "--more", str(more)))

    def test_pytorch_is_killed_and_resumes_with_or_without_torchrun(self):
        for framework, nodes, tasks, ranks in (("pytorch", 4, 1, 4), ("pytorch-torchrun", 2, 1, 2)):
            with self.subTest(framework):
                state = f"{self.folder}/{framework}.pt"
                first = self.train(framework, tasks, f"{framework}-1", 1_000_000, nodes)
                wait_until(lambda: first.poll() is not None or (os.path.exists(state) and self.loss_at_start(framework)))
                self.assertIsNone(first.poll(), first.poll() is not None and first.communicate()[1])
                for pid, (_, words) in self.cluster.processes("head").items():
                    if f"--run-dir {framework}-1" in words and words.startswith(DLRUN):
                        os.kill(pid, signal.SIGKILL)
                first.communicate()
                self.nothing_left()
                before = float(self.loss_at_start(framework).group(1))
                # The loss of one batch of 32 is noisy: after 60 steps it was above half of the first now and then.
                second = self.train(framework, tasks, f"{framework}-2", 400, nodes)
                out, err = second.communicate()
                self.assertEqual(second.returncode, 0, err)
                self.assertRegex(out, rf"began at step [1-9]\d+ of {ranks} ranks")
                ends = re.findall(r"ended with loss ([\d.]+), parameters ([0-9a-f]+)", out)
                self.assertEqual(len(ends), ranks, out)
                self.assertEqual(len(set(ends)), 1, "all ranks agree: " + out)
                self.assertLess(float(ends[0][0]), before / 2)

    def loss_at_start(self, framework):
        """As its log has it by now: what a killed head had not yet written is lost."""
        logs = sorted(os.listdir(f"{self.folder}/{framework}-1/logs"))
        return logs and re.search(r"began at step 0 of \d+ ranks, loss ([\d.]+)", self.read(f"{framework}-1/logs/{logs[0]}"))

    def test_dask_computes_on_all_workers_and_ends_cleanly(self):
        code, out, err = self.job("dask", *self.program("dask_app", "4"))
        self.assertEqual(code, 0, out + err)
        self.assertIn("4 workers on n1 n2 n3 n4 make 799980000", out)
        ranks = self.record()["attempts"][0]["ranks"]
        self.assertEqual([rank["role"] for rank in ranks if rank.get("told_to_end")], ["scheduler"] + ["worker"] * 4)
        self.assertEqual(self.record()["exit_code"], 0)

    def test_mpi4py_on_open_mpi(self):
        code, out, err = self.job("mpi", *self.program("mpi4py_sum"))
        self.assertEqual(code, 0, err)
        self.assertEqual(self.lines(out), [f"rank {i} of 4 on n{i + 1}: 10" for i in range(4)])

    def test_python_on_mpich(self):
        """On one host: Debian's MPICH hangs in MPI_Finalize in half of all runs that go over TCP, under any launcher."""
        code, out, err = self.job("mpi", *self.program("mpich_sum"), nodes=1, flags=(
            "--mpi", "pmi1", "--tasks-per-node", "4", "--set", "environment.set.UCX_TLS=shm,self"))
        self.assertEqual(code, 0, err)
        self.assertEqual(self.lines(out), [f"rank {i} of 4 on n1: 10" for i in range(4)])

    def test_libraries_are_told_the_interface_that_reaches_the_others(self):
        self.decoy_interface()
        self.adapter("net", "interfaces: [nccl, gloo, ucx, openmpi]\n")
        code, out, err = self.job("net", "sh", "-c", 'echo "$NCCL_SOCKET_IFNAME $GLOO_SOCKET_IFNAME $UCX_NET_DEVICES '
                                  '$OMPI_MCA_btl_tcp_if_include"', flags=("--set", "environment.set.UCX_NET_DEVICES=mine"))
        self.assertEqual((code, self.lines(out)), (0, ["=eth0 eth0 mine eth0"] * 4), err)

    def test_open_mpi_talks_by_the_interface_that_reaches_the_others(self):
        """Left to itself, Debian's Open MPI tries the decoy's address, which every node has, and waits for ever."""
        self.decoy_interface()
        code, out, err = self.job("mpi", *self.program("mpi4py_sum"))
        self.assertEqual(code, 0, err)
        self.assertEqual(self.lines(out), [f"rank {i} of 4 on n{i + 1}: 10" for i in range(4)])

    def decoy_interface(self):
        """On every node, as on machines with Docker: an interface that leads nowhere, with the same address everywhere."""
        for node in self.cluster.nodes:
            for words in ("link add docker0 type bridge", "address add 172.17.0.1/16 dev docker0", "link set docker0 up"):
                self.assertEqual(self.cluster.run(node, ["ip", *words.split()], user="root").returncode, 0)
            self.addCleanup(self.cluster.run, node, ["ip", "link", "delete", "docker0"], user="root")

    # programs of a framework's shape

    def test_tensorflow_1_by_flags_its_servers_end_with_the_job(self):
        code, out, err = self.job("tensorflow-ps-flags", *self.program("tf_flags"), gres=("--gres=gpu:2",),
                                  flags=("--gpus-per-node", "2", "--set", "roles.ps.count=2"))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.lines(out),
                         [f"worker {i} on n{i // 2 + 1} with GPU {i % 2}: 2 servers say 36" for i in range(8)])

    def test_tf_config_tells_every_role_its_place(self):
        self.adapter("tf", "extends: tensorflow-ps\nneeds: {modules: [json]}\n")
        code, out, err = self.job("tf", *self.program("tf_config"), flags=(
            "--set", "roles.chief.count=1", "--set", "roles.ps.count=2", "--set", "roles.evaluator.count=1"))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.lines(out), [f"{task} in chief:1 ps:2 worker:3" for task in (
            "chief 0", "evaluator 0", "ps 0", "ps 1", "worker 0", "worker 1", "worker 2")])

    def test_dmlc_scheduler_servers_and_workers_find_each_other(self):
        self.adapter("dmlc", "extends: mxnet\nneeds: {modules: [json]}\n")
        code, out, err = self.job("dmlc", *self.program("dmlc"), flags=("--set", "roles.server.count=2"))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.lines(out).count("worker: everybody is there"), 4)

    def test_horovods_ranks_meet_at_a_store_of_ours(self):
        self.adapter("gloo", "extends: horovod-gloo\nneeds: {modules: [json]}\n")
        code, out, err = self.job("gloo", *self.program("horovod_gloo"), flags=("--tasks-per-node", "2"))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.lines(out), [f"rank {i} of 8 met the others: 2 on n{i // 2 + 1}, 4 across" for i in range(8)])

    def test_frameworks_with_model_parallelism_make_the_groups_of_the_plan(self):
        """From the arguments that their adapters pass: 4 nodes of 2 ranks, tensor groups on one node each."""
        for framework, sizes in (("megatron-lm", "{tensor: 2, context: 2, expert: 2, pipeline: 2}"),
                                 ("megatron-lm", "{tensor: 2, pipeline: 2, order: [tensor, pipeline, data]}"),
                                 ("megatron-deepspeed", "{tensor: 2, expert: 2, pipeline: 2}"), ("torchtitan", "{tensor: 2, context: 2, expert: 4}"),
                                 ("nemo", "{tensor: 2, expert: 2, pipeline: 2}"), ("megatron-bridge", "{tensor: 2, pipeline: 2, order: [tensor, pipeline, data]}")):
            with self.subTest(framework, sizes=sizes):
                self.adapter("shape", f"extends: {framework}\nneeds: {{modules: [json]}}\n")
                code, out, err = self.job("shape", *self.program("parallel_groups", framework), flags=("--tasks-per-node", "2", "--set", f"parallel={sizes}"))
                self.assertEqual(code, 0, out + err)
                self.assertEqual([line.split(":")[0] for line in self.lines(out)], [f"rank {i}" for i in range(8)])
                shutil.rmtree(f"{self.folder}/run")

    # what is wrong is said before any rank starts

    def test_a_tensor_group_over_two_nodes(self):
        code, out, err = self.job("plain", "true", flags=("--tensor-parallel", "2"))
        self.assertEqual(code, 64, out + err)
        self.assertIn("a tensor group of 2 ranks is not on one node: ranks 0 on n1; 1 on n2", err)
        code, out, err = self.job("plain", "sh", "-c", "echo $DLRUN_TENSOR_RANK of $DLRUN_TENSOR_SIZE", flags=(
            "--tensor-parallel", "2", "--set", "parallel.within-node=[]"))
        self.assertEqual((code, self.lines(out)), (0, ["0 of 2", "0 of 2", "1 of 2", "1 of 2"]), err)

    def test_a_framework_that_is_not_there(self):
        code, out, err = self.job("horovod", PYTHON, "-c", "print('started')")
        self.assertEqual(code, 69, out + err)
        self.assertIn("/usr/bin/python3 has no module horovod, and framework horovod needs it", err)
        self.assertNotIn("started", out)
        self.no_rank_started()

    def test_a_program_that_one_node_lacks(self):
        self.adapter("tool", "needs: {programs: [/tmp/tool]}\n")
        for node in ("n1", "n2", "n4"):
            self.run_on("install", "-m", "755", "/bin/true", "/tmp/tool", host=node)
        code, out, err = self.job("tool", "echo", "started")
        self.assertEqual(code, 69, out + err)
        self.assertIn("n3", err)
        self.assertIn("the program /tmp/tool is not found, and framework tool needs it", err)
        self.no_rank_started()

    def test_an_adapter_with_a_slip_of_the_pen(self):
        self.adapter("slip", "env: {WORLD: '{{world.sise}}'}\n")
        code, out, err = self.job("slip", "echo", "started")
        self.assertEqual((code, out), (65, ""))
        self.assertIn("slip.yaml:3:14: env.WORLD: fact 'world.sise' is not known\n  hint: did you mean 'world.size'?", err)


if __name__ == "__main__":
    support.main()
