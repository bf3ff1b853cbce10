#!/usr/bin/env python3
"""Parameter servers that are processes of their own (roles.ps): the bits of a training without them, under every way to connect ranks;
checkpoints that any number of servers goes on from; a bounded staleness; and a killed server under its name."""
import os
import re
import signal

import support
import training_test
from support import wait_until

JOB = training_test.JOB + "roles: {{ps: {{count: {servers}}}}}\n"


class Servers(training_test.Bars):
    def job_with(self, servers, ranks=2, epochs=2):
        return self.write(f"servers-{servers}.yaml", JOB.format(ranks=ranks, epochs=epochs, servers=servers))

    def served(self, run, job, *flags):
        code, out, err = self.dlrun("--run-dir", run, *flags, job)
        self.assertEqual(code, 0, err + out)
        return out

    def test_servers_of_their_own_give_the_bits_of_none_and_any_number_goes_on(self):
        plain = self.finished_weights()
        out = self.served("one", self.job_with(2), "--mpi", "pmix", "--set", "train.epochs=1")
        self.assertIn("2 parameter servers of their own for 2 workers, synchronous; gradients are added inside 1 node first", out)
        servers = self.record("one")["result"]["parameter_servers"]["servers"]
        self.assertEqual([server["rank"] for server in servers], [2, 3])
        roles = [(rank["role"], rank["end"]) for rank in self.record("one")["attempts"][0]["ranks"]]
        self.assertEqual(roles, [("worker", "exit code 0")] * 2 + [("ps", "exit code 0")] * 2)
        self.assertIn("4 rank(s) (2 worker, 2 ps) on 1 node(s)", self.dlrun("status", "one")[1])
        self.without_mpi()
        out = self.served("two", self.job_with(1), "--set", "train.parameter-server.node-sum=off")
        self.assertRegex(out, r"resuming from .*: step 15, ")
        self.assertEqual(self.weights(), plain)

    def test_with_a_staleness_workers_are_ahead_by_its_bound_at_most_and_it_converges(self):
        self.without_mpi()
        out = self.served("run", self.job_with(2, ranks=3, epochs=5), "--set", "train.parameter-server.staleness=2", "--set",
                          "train.optimizer.momentum=0.5")
        self.assertIn("3 workers, asynchronous with a staleness of at most 2 steps: another run has other bits", out)
        result = self.record()["result"]
        self.assertEqual(result["staleness"]["bound"], 2)
        self.assertLessEqual(result["staleness"]["most"], 2)
        self.assertGreater(result["test_accuracy"], 0.9)

    def test_a_killed_server_or_worker_ends_the_job_under_its_role(self):
        for rank, name in ((2, "ps 0"), (1, "worker 1")):
            with self.subTest(name):
                run = f"run-{rank}"
                process = self.start("--run-dir", run, "--set", f"checkpoint.dir={run}-ckpt", "--set", "train.epochs=1000", self.job_with(1))
                saved = lambda: self.exists(f"{run}/events.jsonl") and '"saved"' in self.read(f"{run}/events.jsonl")
                wait_until(lambda: saved() or process.poll() is not None, "it trains")
                victim = next(event["pid"] for event in self.events(run) if event["event"] == "started" and event["rank"] == rank)
                os.kill(victim, signal.SIGKILL)
                _, err = process.communicate()
                self.assertEqual(process.returncode, 128 + 9)
                self.assertRegex(err, rf"{name} \(rank {rank}\).*killed by SIGKILL \(9\)")

    def test_what_servers_exclude_is_refused_with_its_place(self):
        for more, said in (("  shards: 2\n", r"yaml:\d+:\d+: roles\.ps asks for parameter servers of their own, and train\.shards is set"),
                           ("  optimizer: {name: sgd, state: sharded}\n", r"yaml:\d+:\d+: .*train\.optimizer\.state is sharded"),
                           ("  parameter-server: {servers: 2}\n", r"yaml:\d+:\d+: train\.parameter-server\.servers is set"),
                           ("elastic: {min-nodes: 1}\n", r"yaml:\d+:\d+: elastic and roles\.ps are both set"),
                           ("parallel: {tensor: 2}\n", "parallel divides the ranks of one role, and the job has worker and ps")):
            with self.subTest(more):
                text = training_test.JOB.format(ranks=2, epochs=1)
                if "optimizer" in more:
                    text = re.sub(r"  optimizer: .*\n", "", text)
                code, _, err = self.dlrun(self.write("job.yaml", text + more + "roles: {ps: {count: 2}}\n"))
                self.assertEqual(code, 65, err)
                self.assertRegex(err, said)
        code, _, err = self.dlrun(self.write("job.yaml", training_test.JOB.format(ranks=2, epochs=1) + "  parameter-server: {staleness: 2}\n"))
        self.assertEqual(code, 65)
        self.assertRegex(err, r"job\.yaml:\d+:\d+: train\.parameter-server\.staleness is above 0, and the servers live on ranks")
        code, out, err = self.dlrun(self.job_with(9, epochs=1))
        self.assertEqual(code, 65)
        self.assertRegex(err, r"servers-9\.yaml:\d+:\d+: roles\.ps has 9 servers, but the model has 8 tensors to place on them: one would have nothing")
        self.assertNotIn("[worker", out)


if __name__ == "__main__":
    support.main()
