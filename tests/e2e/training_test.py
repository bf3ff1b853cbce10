#!/usr/bin/env python3
"""One command trains: job file, ranks, our runtime, checkpoints, and the same command again after any end."""
import glob
import gzip
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess

import support
from support import wait_until

JOB = """\
name: small
framework: builtin
resources: {{tasks-per-node: {ranks}}}
checkpoint: {{dir: ckpt, every: 3steps, keep: 3}}
train:
  model: mnist-cnn
  data: {{format: idx, dir: data}}
  batch: 32
  epochs: {epochs}
  optimizer: {{name: sgd, lr: 0.05, momentum: 0.9}}
  seed: 5
"""
PARTS = ("input", "compute", "wait", "report and checkpoint")  # of a step, in its trace


def idx(path, magic, shape, payload):
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(struct.pack(f">{len(shape) + 1}I", magic, *shape) + payload)


def make_data(folder, train=960, test=128):
    """Ten classes of noisy bars: learnable, small."""
    os.makedirs(folder)
    noise = random.Random(1)
    for name, count in (("train", train), ("t10k", test)):
        labels = bytes(noise.randrange(10) for _ in range(count))
        images = bytearray()
        for label in labels:
            image = bytearray(noise.randbytes(784))
            for i in range(784):
                image[i] = 255 if i // 28 // 3 == label else image[i] >> 2
            images += image
        idx(f"{folder}/{name}-images-idx3-ubyte.gz", 0x803, (count, 28, 28), bytes(images))
        idx(f"{folder}/{name}-labels-idx1-ubyte.gz", 0x801, (count,), labels)


class Bars(support.Case):
    """Trainings on the same small data."""

    @classmethod
    def setUpClass(cls):
        cls.data = os.path.join(os.environ["E2E_SCRATCH"], f"bars-{os.getpid()}")
        make_data(cls.data)

    def setUp(self):
        super().setUp()
        os.symlink(self.data, os.path.join(self.folder, "data"))
        self.job = self.write("job.yaml", JOB.format(ranks=2, epochs=2))

    def train(self, run, *flags):
        return self.dlrun("--run-dir", run, *flags, self.job)

    def weights(self, folder="ckpt"):
        newest = max(glob.glob(os.path.join(self.folder, folder, "step-*")), key=lambda path: int(path.rpartition("-")[2]))
        content = b""
        for path in sorted(glob.glob(newest + "/*.safetensors")):
            with open(path, "rb") as file:
                content += file.read()
        self.assertGreater(len(content), 1000000)
        return content

    def bits(self, folder):
        newest = max(glob.glob(os.path.join(self.folder, folder, "step-*")), key=lambda path: int(path.rpartition("-")[2]))
        return [hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() for path in sorted(glob.glob(newest + "/*.safetensors"))]

    def finished_weights(self):
        """Of an uninterrupted run with the same seed and ranks."""
        self.assertEqual(self.train("whole", "--set", "checkpoint.dir=whole-ckpt")[0], 0)
        return self.weights("whole-ckpt")

    def without_mpi(self):
        """The loader finds files that are no libraries in place of both MPIs, as if none were on this machine."""
        os.makedirs(os.path.join(self.folder, "no-mpi"))
        for library in ("libmpich.so.12", "libmpi.so.12", "libmpi.so.40"):
            self.write(f"no-mpi/{library}", "")
        self.environment["LD_LIBRARY_PATH"] = os.path.join(self.folder, "no-mpi")


class Training(Bars):
    def test_a_job_file_ends_in_a_trained_model(self):
        code, out, err = self.train("run")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"\[worker 0\] test accuracy \d+\.\d+ %")
        record = self.record()
        self.assertGreater(record["result"]["test_accuracy"], 0.9)
        self.assertEqual(record["result"]["steps"], 30)
        self.assertTrue(glob.glob(os.path.join(self.folder, "run", "events.out.tfevents.*")))
        steps = [json.loads(line) for line in self.read("run/metrics.jsonl").splitlines()]
        self.assertTrue(any("loss" in line for line in steps))

    def test_both_mpis_train_and_each_gives_the_same_bits_twice(self):
        for mpi in ("pmix", "pmi1"):
            with self.subTest(mpi):
                for turn in ("a", "b"):
                    code, _, err = self.train(f"{mpi}-{turn}", "--mpi", mpi, "--set", f"checkpoint.dir=ckpt-{mpi}-{turn}")
                    self.assertEqual(code, 0, err)
                self.assertEqual(self.weights(f"ckpt-{mpi}-a"), self.weights(f"ckpt-{mpi}-b"))

    def test_an_mpich_whose_library_is_called_libmpi_so_12_is_used(self):
        """That is its name everywhere but on Debian 12 and older. The loader finds no libmpich.so.12 here."""
        self.without_mpi()
        os.remove(os.path.join(self.folder, "no-mpi", "libmpi.so.12"))
        library = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
        os.symlink(re.search(r"libmpich\.so\.12 .*=> (.*)", library)[1], os.path.join(self.folder, "no-mpi", "libmpi.so.12"))
        self.assertRegex(self.dlrun("--version")[1], r"  yes  trainer over MPICH\n")
        code, _, err = self.train("run", "--mpi", "pmi1", "--set", "train.epochs=1", "--set", "environment.set.DLRUN_COMM=mpich")
        self.assertEqual(code, 0, err)

    def test_without_any_mpi_it_trains_to_the_same_bits(self):
        expected = self.finished_weights()
        self.without_mpi()
        code, out, err = self.train("run")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"no MPI \(cannot load .*libmpich.so.12.*\): ranks use dlrun's own links, allreduce through shared memory")
        self.assertEqual(self.weights(), expected)
        code, out, err = self.train("one", "--tasks-per-node", "1", "--set", "checkpoint.dir=one", "--set", "train.epochs=1")
        self.assertEqual(code, 0, err)
        self.assertNotIn("no MPI", out)

    def test_without_any_mpi_every_allreduce_works_over_tcp(self):
        """As on several nodes, where a loopback is the network: halving, the direct exchange in 16 bits, parameter servers."""
        self.without_mpi()
        for name, setting in (("plain", "train.seed=5"), ("bf16", "train.allreduce.dtype=bf16"), ("ring", "train.allreduce.algorithm=ring"),
                              ("servers", "train.parameter-server.placement=greedy")):
            with self.subTest(name):
                code, out, err = self.train(name, "--tasks-per-node", "3", "--set", "environment.set.DLRUN_NODE_RANKS=1",
                                            "--set", f"checkpoint.dir={name}-ckpt", "--set", "train.epochs=1", "--set", setting)
                self.assertEqual(code, 0, err)
                self.assertIn("ranks use dlrun's own links over TCP", out)
                self.assertEqual(self.record(name)["result"]["steps"], 10)

    def test_without_any_mpi_a_killed_rank_ends_the_run_under_its_name(self):
        self.without_mpi()
        head = self.start("--run-dir", "run", "--set", "train.epochs=200", "--set", "environment.set.DLRUN_NODE_RANKS=1", self.job)
        saved = lambda: self.exists("run/events.jsonl") and '"saved"' in self.read("run/events.jsonl")
        wait_until(lambda: saved() or head.poll() is not None, "it trains")
        victim = next(event["pid"] for event in self.events() if event["event"] == "started" and event["rank"] == 1)
        os.kill(victim, signal.SIGKILL)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 137, err)
        self.assertIn("worker 1 (rank 1)", err)
        self.assertIn("killed by SIGKILL (9)", err)

    def test_an_mpi_that_is_asked_for_and_not_there_is_named(self):
        self.without_mpi()
        code, out, err = self.train("run", "--mpi", "pmix")
        self.assertEqual(code, 69)
        self.assertIn("libmpi.so.40", out + err)
        self.assertIn("or start the job with --mpi pmi1, which needs no MPI", out + err)
        code, out, _ = self.dlrun("--version")
        self.assertRegex(out, r"  no   trainer over MPICH \(cannot load .*libmpich.so.12")
        self.assertIn("  yes  trainer without MPI (shared memory, TCP)", out)

    def test_parameter_servers_give_the_bits_of_shared_memory_and_the_record_their_bytes(self):
        self.assertEqual(self.train("plain", "--set", "checkpoint.dir=plain-ckpt")[0], 0)
        for placement in ("round-robin", "greedy", "split"):
            with self.subTest(placement):
                run, folder = f"servers-{placement}", f"{placement}-ckpt"
                code, out, err = self.train(run, "--set", f"checkpoint.dir={folder}",
                                            "--set", f"train.parameter-server.placement={placement}")
                self.assertEqual(code, 0, err)
                self.assertIn(f"parameter servers: 2, placement {placement}", out)
                self.assertEqual(self.weights(folder), self.weights("plain-ckpt"))
                servers = self.record(run)["result"]["parameter_servers"]["servers"]
                self.assertEqual([server["rank"] for server in servers], [0, 1])
                self.assertGreater(sum(server["bytes"] for server in servers), 13000000)

    def test_a_16_bit_dtype_trains_as_well_and_gives_the_same_bits_twice(self):
        for turn in ("a", "b"):
            code, _, err = self.train(f"bf16-{turn}", "--set", f"checkpoint.dir=ckpt-{turn}", "--set", "train.allreduce.dtype=bf16")
            self.assertEqual(code, 0, err)
        self.assertEqual(self.weights("ckpt-a"), self.weights("ckpt-b"))
        self.assertGreater(self.record("bf16-b")["result"]["test_accuracy"], 0.9)

    def test_a_trace_has_all_of_a_step_and_one_clock_for_all_ranks(self):
        """Rank 1's clock is 5,000 s ahead, as that of a node that was started earlier."""
        ahead = f"env, LD_PRELOAD={os.environ['E2E_SHIMS']}, DLRUN_TEST_SHIM=clock-ahead"
        wrap = f"launch: {{wrap: {{ranks: [1], command: [{ahead}]}}}}\n"
        job = self.write("job.yaml", JOB.format(ranks=2, epochs=2) + "  trace: {skip: 2, steps: 12}\n" + wrap)
        code, out, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 0, err)
        self.assertIn("trace of steps 3 to 14: ", out)
        begins = []
        for rank in range(2):
            trace = json.loads(self.read(f"run/trace/rank-{rank:05}.json"))
            spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
            self.assertEqual({span["pid"] for span in spans}, {rank})
            steps = [span for span in spans if span["name"].startswith("step ")]
            self.assertEqual([span["name"] for span in steps], [f"step {i}" for i in range(3, 15)])
            begins.append([span["ts"] for span in steps])
            within = [span for span in spans if span["tid"] == 0 and span not in steps]
            of_steps = [[span for span in within if step["ts"] <= span["ts"] and span["ts"] + span["dur"] <= step["ts"] + step["dur"]] for step in steps]
            self.assertEqual(sum(map(len, of_steps)), len(within), "each part lies in a step")
            shares = []
            for step, inside in zip(steps, of_steps):
                lasts = lambda names, inside=inside: sum(span["dur"] for span in inside if span["name"] in names)
                layers = {span["name"] for span in inside} - set(PARTS)
                shares.append((lasts(PARTS) / step["dur"], lasts(layers) / lasts({"compute"})))
                self.assertIn("conv1 weights", layers)
            # In some step the process had to wait for a processor between two parts, which is no part.
            for share in map(statistics.median, zip(*shares)):
                self.assertAlmostEqual(share, 1, delta=0.08)
            self.assertTrue(any(span["name"].startswith("allreduce of ") for span in spans if span["tid"] == 1))
            self.assertEqual(any(span["cat"] == "write" for span in spans if span["tid"] == 2), rank == 0)
        self.assertGreater(abs(trace["otherData"]["clock_offset_us"]), 4e9)
        code, out, err = self.dlrun("--run-dir", "short", "--set", "train.trace.skip=1000", "--set", "checkpoint.dir=short-ckpt", job)
        self.assertEqual(code, 0, err)
        self.assertIn("warning: there is no trace: this run had 30 steps, and train.trace.skip is 1000", out)
        for ours, theirs in zip(*begins):
            self.assertLess(abs(ours - theirs), 60e6)

    def test_a_benchmark_tells_rates_memory_and_the_bound(self):
        job = JOB.format(ranks=2, epochs=1).replace("  epochs: 1\n", "  benchmark: {warmup: 1, steps: 4, repeat: 2}\n")
        code, out, err = self.dlrun("--run-dir", "bench", self.write("bench.yaml", job))
        self.assertEqual(code, 0, err)
        for line in ("images/s", "step: ", "memory: ", "scaling: ", "input: ", "bound: "):
            self.assertIn(line, out)
        result = self.record("bench")["result"]
        self.assertEqual(result["steps"], 8)
        self.assertAlmostEqual(result["images_per_s"], 2 * result["images_per_s_rank"], places=3)
        self.assertGreater(result["memory_mib"]["peak_of_rank"], result["memory_mib"]["model"])
        self.assertGreaterEqual(result["bound"]["bound_ms"], result["bound"]["communication_ms"])

    def test_the_time_to_solution_is_told_as_mlperf_s_log(self):
        code, out, err = self.dlrun("--run-dir", "run", "--set", "train.mllog=true", "--set", "train.stop-at.accuracy=0.01", self.job)
        self.assertEqual(code, 0, err)
        lines = [json.loads(line.split(":::MLLOG ", 1)[1]) for line in out.splitlines() if ":::MLLOG " in line]
        keys = [line["key"] for line in lines]
        self.assertEqual(keys[0], "init_start")
        self.assertEqual(keys[keys.index("init_stop"):], ["init_stop", "run_start", "epoch_start", "epoch_stop", "eval_start", "eval_accuracy", "eval_stop", "run_stop"])
        self.assertEqual([line["time_ms"] for line in lines], sorted(line["time_ms"] for line in lines))
        self.assertEqual(lines[-1]["metadata"], {"epoch_num": 1, "status": "success"})
        values = {line["key"]: line["value"] for line in lines}
        self.assertEqual((values["submission_benchmark"], values["seed"], values["opt_name"], values["target_accuracy"]), ("mnist-cnn", 5, "sgd", 0.01))
        self.assertGreaterEqual(values["eval_accuracy"], 0.01)

    def test_a_checkpoint_tells_what_its_bits_rest_on_and_a_resume_elsewhere_says_so_once(self):
        self.assertEqual(self.train("first")[0], 0)
        manifest = json.loads((self.newest("ckpt") / "manifest.json").read_text())
        self.assertLessEqual({"instructions", "threads", "onednn"}, manifest["computed_with"].keys())
        line = f"threads {manifest['computed_with']['threads']} in the checkpoint, 3 now"
        code, out, err = self.train("second", "--set", "train.epochs=3", "--set", "environment.set.OMP_NUM_THREADS=3")
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("the last bits may differ from those of one run: "), 1, out)
        self.assertIn(line, out)

    def test_a_benchmark_leaves_the_checkpoints_of_a_training_alone(self):
        code, out, err = self.train("training")
        self.assertEqual(code, 0, err)
        before = sorted(os.listdir(os.path.join(self.folder, "ckpt"))), self.weights()
        code, out, err = self.train("bench", "--set", "train.epochs=null", "--set", "train.benchmark={warmup: 1, steps: 4, repeat: 2}")
        self.assertEqual(code, 0, err)
        self.assertIn("resuming from", out)
        self.assertIn("images/s", out)
        self.assertEqual((sorted(os.listdir(os.path.join(self.folder, "ckpt"))), self.weights()), before)

    def newest(self, folder):
        return max(pathlib.Path(self.folder, folder).glob("step-*"), key=lambda path: int(path.name[5:]))

    def test_a_recipe_reaches_the_ranks_and_its_parts_end_with_the_bits_of_the_whole(self):
        """AdamW without decay of vectors, accumulated parts of a global batch, smoothed labels, mixed images, an average of the weights."""
        recipe = "  global-batch: 192\n  accumulate: 3\n  label-smoothing: 0.1\n  mixup: 0.2\n  ema: 0.8\n"
        job = self.write("recipe.yaml", JOB.format(ranks=2, epochs=2).replace("  batch: 32\n", recipe).replace(
            "{name: sgd, lr: 0.05, momentum: 0.9}", "{name: adamw, lr: 0.002, no-decay: [vectors, conv1.weight]}"))
        code, out, err = self.dlrun("--run-dir", "run", job)
        self.assertEqual(code, 0, err)
        result = self.record("run")["result"]
        self.assertEqual(result["steps"], 10)
        self.assertGreater(result["test_accuracy"], 0.5)
        manifest = json.loads((self.newest("ckpt") / "manifest.json").read_text())
        self.assertEqual((manifest["batch"], manifest["epoch"]), (32, 2))
        about = {"accumulate": "3", "ema": "0.8", "global-batch": "192", "label-smoothing": "0.1", "mixup": "0.2",
                 "optimizer.name": "adamw", "optimizer.no-decay": "vectors conv1.weight", "optimizer.weight-decay": "0.01"}
        self.assertEqual({key: manifest["settings"].get(key) for key in about}, about)
        evaluation = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), "--evaluate", "data", "--from", "idx", "--checkpoint", "ckpt"],
                                    cwd=self.folder, check=True, capture_output=True, text=True)
        self.assertAlmostEqual(json.loads(evaluation.stdout)["top1"], result["test_accuracy"], 4)
        for epochs in ("1", "2"):
            code, out, err = self.dlrun("--run-dir", f"part-{epochs}", "--set", "checkpoint.dir=parts", "--set", f"train.epochs={epochs}", job)
            self.assertEqual(code, 0, err)
        self.assertEqual(self.bits("parts"), self.bits("ckpt"))
        code, out, err = self.dlrun("--run-dir", "one", "--tasks-per-node", "1", "--set", "checkpoint.dir=parts", "--set", "train.epochs=3", job)
        self.assertEqual(code, 0, err)
        self.assertNotIn("batch: ", out)
        self.assertEqual(self.record("one")["result"]["steps"], 15)
        code, out, err = self.dlrun("--run-dir", "bad", "--set", "train.global-batch=93", job)
        self.assertEqual(code, 65, err)
        self.assertIn("train.global-batch 93 cannot be divided by 2 ranks x accumulate 3", out + err)

    def test_kill_9_at_any_moment_then_the_same_command_gives_the_same_bits(self):
        for turn, checkpoints in enumerate((0, 2, 5)):
            with self.subTest(checkpoints=checkpoints):
                folder = f"ckpt-{turn}"
                head = self.start("--run-dir", f"cut-{turn}", "--set", f"checkpoint.dir={folder}", self.job)
                saved = lambda: self.exists(f"cut-{turn}/events.jsonl") and self.read(f"cut-{turn}/events.jsonl").count('"saved"') >= checkpoints
                wait_until(lambda: saved() or head.poll() is not None, "checkpoints were written")
                head.kill()
                head.communicate()
                self.none_left()
                code, _, err = self.train(f"again-{turn}", "--set", f"checkpoint.dir={folder}")
                self.assertEqual(code, 0, err)
                self.assertEqual(self.weights(folder), self.finished_weights() if turn == 0 else self.whole)
                if turn == 0:
                    self.whole = self.weights("whole-ckpt")

    def test_an_interrupt_saves_and_says_run_me_again(self):
        self.job = self.write("job.yaml", JOB.format(ranks=2, epochs=200))
        head = self.start("--run-dir", "run", self.job)
        wait_until(lambda: self.exists("run/events.jsonl") and '"saved"' in self.read("run/events.jsonl") or head.poll() is not None, "it trains")
        head.send_signal(signal.SIGINT)
        _, err = head.communicate()
        self.assertEqual(head.returncode, 75, err)
        self.assertIn("stopped with a valid checkpoint", err)
        self.assertEqual(self.record()["exit_code"], 75)

    def test_a_finished_training_is_not_repeated(self):
        self.train("first")
        before = self.weights()
        code, out, err = self.train("second")
        self.assertEqual(code, 0, err)
        self.assertIn("test accuracy", out)
        self.assertEqual(self.weights(), before)

    def test_other_settings_than_the_checkpoint_s_are_said_and_a_finished_training_is_no_result_of_them(self):
        self.assertEqual(self.train("first")[0], 0)
        before = self.weights()
        code, out, err = self.train("second", "--set", "train.optimizer.lr=0.2", "--set", "train.batch=16")
        self.assertEqual(code, 65, err)
        self.assertIn("2 epochs are complete, but with other settings than this job's: nothing was trained", err)
        self.assertIn("optimizer.lr: 0.05 in the checkpoint, 0.2 now", err)
        self.assertIn("batch: 32 in the checkpoint, 16 now", err)
        self.assertIn("--set checkpoint.dir=", err)
        self.assertNotIn("test accuracy", out)
        self.assertEqual(self.weights(), before)
        code, out, err = self.train("third", "--set", "train.optimizer.lr=0.02", "--set", "train.epochs=3")
        self.assertEqual(code, 0, err)
        self.assertIn("optimizer.lr: 0.05 in the checkpoint, 0.02 now", out)
        self.assertIn("epochs: 2 in the checkpoint, 3 now", out)
        self.assertRegex(out, r"epoch 3/3  loss")  # from its first step on: all of it

    def test_the_epoch_of_a_resume_is_told_whole_and_a_stretched_schedule_is_said(self):
        cosine = ("--set", "train.schedule={decay: cosine}")
        self.job = self.write("job.yaml", JOB.format(ranks=2, epochs=200).replace("every: 3steps", "every: 7steps"))
        head = self.start("--run-dir", "run", *cosine, self.job)
        wait_until(lambda: self.exists("run/events.jsonl") and '"saved"' in self.read("run/events.jsonl") or head.poll() is not None, "it saves")
        head.kill()
        head.communicate()
        self.none_left()
        newest = max(int(name[5:]) for name in os.listdir(os.path.join(self.folder, "ckpt")) if name.startswith("step-"))
        last = (newest // 15 + 1) * 15
        code, out, err = self.train("again", *cosine, "--set", f"train.epochs={last // 15}")
        self.assertEqual(code, 0, err)
        self.assertIn(f"schedule: cosine over 200 epochs in the checkpoint, {last // 15} now", out)
        self.assertIn(f"epoch {last // 15}/{last // 15}  loss", out)
        [line] = [json.loads(line) for line in self.read("again/metrics.jsonl").splitlines() if "epoch_loss" in line]
        self.assertNotIn("epoch_steps", line)

    def test_another_number_of_ranks_resumes(self):
        head = self.start("--run-dir", "two", "--set", "train.epochs=3", self.job)
        wait_until(lambda: self.exists("two/events.jsonl") and self.read("two/events.jsonl").count('"saved"') >= 2 or head.poll() is not None, "it saved")
        head.kill()
        head.communicate()
        self.none_left()
        code, out, err = self.train("three", "--tasks-per-node", "3", "--set", "train.epochs=3")
        self.assertEqual(code, 0, err)
        self.assertGreater(self.record("three")["result"]["test_accuracy"], 0.9)

    def test_shards_give_the_same_bits_at_any_number_of_ranks(self):
        """Batch norm, dropout and augmentation are a shard's; the ranks of the second run resume as others, over TCP."""
        layers = ["{convolution: 8, kernel: 3, padding: 1}", "batch-norm", "relu", "{max-pool: 2}", "{dropout: 0.25}", "{fully-connected: classes}"]
        self.job = self.write("job.yaml", JOB.format(ranks=1, epochs=2).replace("mnist-cnn", f"{{name: small, layers: [{', '.join(layers)}]}}")
                              .replace("dir: data}", "dir: data, augment: {crop: 2}}").replace("batch: 32", "batch: 24\n  shards: 5"))
        self.environment["OMP_NUM_THREADS"] = "1"  # bits rest on the threads per rank
        self.assertEqual(self.train("one", "--set", "checkpoint.dir=one-ckpt")[0], 0)
        code, _, err = self.train("three", "--tasks-per-node", "3", "--set", "train.epochs=1")
        self.assertEqual(code, 0, err)
        code, out, err = self.train("two", "--tasks-per-node", "2", "--mpi", "pmi1", "--set", "environment.set.DLRUN_COMM=pmi",
                                    "--set", "environment.set.DLRUN_NODE_RANKS=1", "--set", "train.shards=auto")
        self.assertEqual(code, 0, err)
        self.assertIn("ranks: 3 in the checkpoint, 2 now", out)
        code, _, err = self.train("other", "--set", "train.epochs=3", "--set", "train.shards=4")
        self.assertNotEqual(code, 0)
        self.assertRegex(err, "train.shards is 4, and .* has 5")
        self.assertEqual(self.bits("one-ckpt"), self.bits("ckpt"))
        result = lambda run: {key: value for key, value in self.record(run)["result"].items() if key.startswith("test_")}
        self.assertEqual(result("one"), result("two"))
        code, _, err = self.train("six", "--tasks-per-node", "6")
        self.assertEqual(code, 65, err)
        self.assertIn("the job has 6 ranks, but the training has 5 shards", err)

    def test_the_optimizer_s_state_in_parts_goes_on_at_other_numbers_of_ranks_to_the_bits_of_the_whole(self):
        """Killed at two ranks, asked to stop at three over TCP, ended by one: the weights of ranks that all have the state."""
        self.environment["OMP_NUM_THREADS"] = "1"  # bits rest on the threads per rank
        self.job = self.write("job.yaml", JOB.format(ranks=2, epochs=2).replace("batch: 32", "batch: 16\n  shards: 3\n  clip-norm: 2")
                              .replace("{name: sgd, lr: 0.05, momentum: 0.9}", "{name: adamw, lr: 0.002, state: sharded}"))
        code, out, err = self.train("whole", "--set", "checkpoint.dir=whole", "--set", "train.optimizer.state=replicated")
        self.assertEqual(code, 0, err)
        self.assertNotIn("optimizer state", out)
        # Once is enough: on a slow disk a second time may be the last.
        saved = lambda run: self.exists(f"{run}/events.jsonl") and '"saved"' in self.read(f"{run}/events.jsonl")
        head = self.start("--run-dir", "two", self.job)
        wait_until(lambda: saved("two") or head.poll() is not None, "two ranks have saved")
        head.kill()
        head.communicate()
        self.none_left()
        over_tcp = ("--tasks-per-node", "3", "--set", "environment.set.DLRUN_NODE_RANKS=1")
        head = self.start("--run-dir", "three", *over_tcp, self.job)
        wait_until(lambda: saved("three") or head.poll() is not None, "three ranks have saved")
        head.send_signal(signal.SIGINT)
        out, err = head.communicate()
        self.assertEqual(head.returncode, 75, err)
        self.assertRegex(out, r"optimizer state: (8|9)\.\d MB on rank 0, of 26\.\d MB that 3 ranks have together")
        self.assertIn("ranks: 2 in the checkpoint, 3 now", out)
        newest = self.newest("ckpt")
        self.assertEqual(sorted(path.name for path in newest.glob("*.safetensors")),
                         [f"{what}-0000{part}-of-00003.safetensors" for what in ("model", "optimizer") for part in (1, 2, 3)])
        tool = lambda *arguments: subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), *arguments, "--checkpoint", newest],
                                                 cwd=self.folder, check=True, capture_output=True, text=True).stdout
        tool("--export", "weights.safetensors")
        self.assertGreater(os.path.getsize(os.path.join(self.folder, "weights.safetensors")), 13000000)
        self.assertGreater(json.loads(tool("--evaluate", "data", "--from", "idx"))["top1"], 0.2)
        part = pathlib.Path(shutil.copytree(newest, pathlib.Path(self.folder, "torn", newest.name)), "optimizer-00002-of-00003.safetensors")
        part.write_bytes(part.read_bytes()[:-1] + bytes([part.read_bytes()[-1] ^ 1]))
        code, _, err = self.train("torn-run", "--set", "checkpoint.dir=torn")
        self.assertEqual(code, 65, err)
        self.assertIn(f"{newest.name}: optimizer-00002-of-00003.safetensors: checksum", err)
        code, out, err = self.train("one", "--tasks-per-node", "1", "--set", "train.optimizer.state=replicated")
        self.assertEqual(code, 0, err)
        self.assertIn("ranks: 3 in the checkpoint, 1 now", out)
        self.assertEqual(self.bits("ckpt"), self.bits("whole"))

    def test_parts_of_a_state_are_summed_over_tcp_and_what_does_not_go_with_them_is_named_before_any_rank(self):
        job = JOB.format(ranks=3, epochs=1).replace("momentum: 0.9}", "momentum: 0.9, state: sharded}").replace("seed: 5", "seed: 5\n  precision: bf16")
        self.job = self.write("job.yaml", job)
        weights = []
        for turn in ("a", "b"):
            code, _, err = self.train(turn, "--set", f"checkpoint.dir=ckpt-{turn}", "--set", "environment.set.DLRUN_NODE_RANKS=1",
                                      "--set", "train.allreduce.bucket=256KiB")
            self.assertEqual(code, 0, err)
            self.assertGreater(self.record(turn)["result"]["test_accuracy"], 0.5)
            weights.append(self.bits(f"ckpt-{turn}"))
        self.assertEqual(weights[0], weights[1])
        for more, said in (("  parameter-server: {}\n", "parameter-server is set"), ("elastic: {}\n", "'elastic' is set")):
            self.job = self.write("bad.yaml", job + more)
            code, _, err = self.train(f"bad-{said[:4]}".replace("'", ""))
            self.assertEqual(code, 65, err)
            self.assertRegex(err, rf"bad.yaml:10:58: train.optimizer.state is sharded, and .*{said}")

    def test_an_elastic_training_goes_on_without_killed_ranks_and_ends_with_the_same_bits(self):
        """Rank 2 is killed, then rank 0, which has the files, and rank 1 is stopped; the bits are those of one rank that nobody killed."""
        self.environment["OMP_NUM_THREADS"] = "1"
        job = JOB.format(ranks=1, epochs=6).replace("batch: 32", "batch: 16\n  shards: 4")
        self.job = self.write("job.yaml", job)
        self.assertEqual(self.train("whole", "--set", "checkpoint.dir=whole-ckpt")[0], 0)
        self.job = self.write("job.yaml", job.replace("ranks: 1", "ranks: 4").replace("tasks-per-node: 1", "tasks-per-node: 4") + "elastic: {min-ranks: 1, restarts: 0}\nlaunch: {lost-after: 3s}\n")
        head = self.start("--run-dir", "run", self.job)
        events = lambda name: [event for event in (self.events() if self.exists("run/events.jsonl") else []) if event["event"] == name]
        saved = lambda: any("saved" in event["report"] for event in events("report"))
        wait_until(lambda: saved() or head.poll() is not None, "it trains")
        pids = {event["rank"]: event["pid"] for event in events("started")}
        for generation, (rank, number) in enumerate(((2, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)), start=1):
            os.kill(pids[rank], number)
            wait_until(lambda: len(events("new_world")) > generation or head.poll() is not None, "the others go on")
        out, err = head.communicate()
        self.assertEqual(head.returncode, 0, err)
        self.assertIn("lost rank 2 on ", err)
        self.assertEqual([event["ranks"] for event in events("new_world")], [[0, 1, 2, 3], [0, 1, 3], [1, 3], [3]])
        print("going on took", [round(event["seconds"], 3) for event in events("new_world")[1:]])
        self.assertEqual(self.bits("ckpt"), self.bits("whole-ckpt"))
        self.assertEqual(self.record("run")["result"]["test_loss"], self.record("whole")["result"]["test_loss"])
        self.assertEqual([(loss["ranks"], loss["first_rank_left"]) for loss in self.record("run")["attempts"][-1]["losses"]], [([2], 0), ([0], 1), ([1], 3)])
        self.assertEqual([rank.get("spared", False) for rank in self.record("run")["attempts"][-1]["ranks"]], [True, True, True, False])
        code, out, err = self.dlrun("status", "run")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"lost       ranks \[2\] on \S+: killed by SIGKILL \(9\); continued after \S+\nlost       ranks \[0\]")
        self.assertEqual([loss["ranks"] for loss in json.loads(self.dlrun("status", "run", "--json")[1])["losses"]], [[2], [0], [1]])
        self.assertIn("lost ranks", self.dlrun("diff", "whole", "run")[1])
        self.assertEqual(self.dlrun("report", "run", "-o", "page.html")[0], 0)
        for text in ("lost ranks [2] on ", "continued after "):
            self.assertIn(text, self.read("page.html"))
        figures = lambda run: [(line["step"], line.get("loss"), line.get("epoch_loss"), line.get("test_loss")) for line in map(json.loads, self.read(f"{run}/metrics.jsonl").splitlines())]
        self.assertEqual(figures("run"), figures("whole"))

    def test_the_node_script_by_hand_does_the_same_job(self):
        expected = self.finished_weights()
        script = glob.glob(os.path.join(self.folder, "whole", "nodes", "*.sh"))
        self.assertEqual(len(script), 1)
        subprocess.run(["rm", "-rf", os.path.join(self.folder, "whole-ckpt")], check=True)
        done = subprocess.run(["bash", script[0]], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("test accuracy", done.stdout)
        self.assertEqual(self.weights("whole-ckpt"), expected)

    def test_mistakes_in_train_are_named_in_the_job_file_before_any_rank(self):
        self.job = self.write("job.yaml", JOB.format(ranks=2, epochs=2).replace("momentum", "momentun"))
        code, _, err = self.train("run")
        self.assertEqual(code, 65)
        self.assertRegex(err, r"job.yaml:10:36: unknown key 'momentun' in 'train.optimizer'\n  hint: did you mean 'momentum'\?")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "run")), "the name is free for the mended job")

    def test_damaged_data_is_named_with_its_offset_before_any_rank(self):
        os.unlink(os.path.join(self.folder, "data"))
        os.makedirs(os.path.join(self.folder, "data"))
        for name in os.listdir(self.data):
            with open(os.path.join(self.data, name), "rb") as file:
                content = file.read()
            if name == "train-labels-idx1-ubyte.gz":
                plain = bytearray(gzip.decompress(content))
                plain[8 + 100] = 77
                content = gzip.compress(bytes(plain))
            with open(os.path.join(self.folder, "data", name), "wb") as file:
                file.write(content)
        code, _, err = self.train("run")
        self.assertEqual(code, 65, err)
        self.assertIn("train-labels-idx1-ubyte.gz", err)
        self.assertIn("77", err)
        self.assertIn("108", err)

    def test_a_missing_data_folder(self):
        code, _, err = self.train("run", "--set", "train.data.dir=/no/such/folder")
        self.assertEqual(code, 65, err)
        self.assertIn("/no/such/folder", err)


if __name__ == "__main__":
    support.main()
