#!/usr/bin/python3
"""shards_training_test.py DLRUN_TRAIN [PART...]: trainings of shards on GPUs: the same bits on one GPU and on two, also where the
other number goes on from a checkpoint, a rank is killed, or one joins; what the order of the shards costs; and a rank that is slow is
named. For times it needs two GPUs; where there is one, two ranks share it. The parts with a launcher take dlrun from beside
DLRUN_TRAIN."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

from trainings import LONGEST, TRAIN, Trainings, main, of_shared_gpu

HOME = pathlib.Path(TRAIN).resolve().parent.parent
DLRUN = str(HOME / "bin/dlrun")
PLAIN_RATE = {"decay": "none"}  # the same whatever number of epochs is asked for
# Dropout, batch norm, and neither of them.
MODELS = {
    "mnist-cnn": {"data": {"format": "synthetic", "shape": [1, 28, 28], "classes": 10, "samples": 1000}, "batch": 64},
    "resnet18": {"data": {"format": "synthetic", "shape": [3, 64, 64], "classes": 10, "samples": 500}, "batch": 32},
    "alexnet": {"data": {"format": "synthetic", "shape": [3, 224, 224], "classes": 10, "samples": 200}, "batch": 16},
}
ELASTIC = """\
name: shards
framework: builtin
resources: {nodes: 1, tasks-per-node: %d, gpus-per-node: %d}
launch: {lost-after: 2s, grace: 20s, bind: false}
checkpoint: {dir: %s, every: 50steps, keep: 2}
%s
train:
  model: resnet18
  data: {format: synthetic, shape: [3, 64, 64], classes: 10, samples: 4000}
  batch: 32
  shards: 2
  epochs: %d
  optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
  device: cuda
  seed: 5
"""


class ShardsTraining(Trainings):
    def trained(self, count, model, epochs=2, **train):
        """What a training of so many ranks leaves: the bits of its last checkpoint, and its figures."""
        world = self.ranks({}, count, **{"model": model, **MODELS[model], "epochs": epochs, "schedule": PLAIN_RATE, **train})
        codes = world.wait(LONGEST)
        self.assertEqual(codes, [0] * count, world.text(0) + world.text(count - 1))
        self.assertIn("gradients are summed on the GPUs by", world.text(0))
        return self.bits(self.folder / "ckpt"), self.figures(self.folder)

    def bits(self, folder):
        newest = max(folder.glob("step-*"), key=lambda path: int(path.name.split("-")[1]))
        files = sorted(newest.glob("*.safetensors"))
        self.assertTrue(files)
        return newest.name, [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files]

    def figures(self, folder):
        lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
        names = ("loss", "epoch_loss", "test_loss", "test_accuracy")  # other lines tell of checkpoints and times
        return [[line["step"], *(line.get(name) for name in names)] for line in lines if "step" in line and any(name in line for name in names)]

    def test_one_gpu_and_two_give_the_same_bits(self):
        for model, precision, shards, more in (("mnist-cnn", "f32", 2, {}), ("mnist-cnn", "bf16", 4, {}), ("resnet18", "f32", 2, {}),
                                               ("resnet18", "bf16", 4, {}), ("resnet18", "f32", 3, {"clip-norm": 1.0}),
                                               ("resnet18", "f32", 2, {"accumulate": 2}), ("alexnet", "f32", 2, {})):
            outcomes = []
            for count in (1, 2):
                self.setUp()
                outcomes.append(self.trained(count, model, precision=precision, shards=shards, **more))
            print(f"--- {model} {precision} {shards} shards {more}: {outcomes[0][0]}", flush=True)
            self.assertEqual(outcomes[0], outcomes[1])

    def test_the_other_number_goes_on_with_the_same_bits(self):
        for model, shards in (("resnet18", 2), ("alexnet", 4)):
            self.setUp()
            whole = self.trained(1, model, 3, shards=shards)
            for first, later in ((1, 2), (2, 1)):
                self.setUp()
                self.trained(first, model, 1, shards=shards)
                bits, _ = self.trained(later, model, 3, shards=shards)
                self.assertEqual(bits, whole[0])

    def launched(self, name, ranks, epochs, elastic=""):
        job = self.folder / f"{name}.yaml"
        dlrun, gpus = (DLRUN, ranks) if not of_shared_gpu(ranks, 0) else (self.dlrun_of_shared_gpu(name), 0)
        job.write_text(ELASTIC % (ranks, gpus, f"{name}-ckpt", elastic, epochs))
        with (self.folder / f"{name}.log").open("w") as log:
            return subprocess.Popen([dlrun, "--run-dir", name, job.name], cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)

    def dlrun_of_shared_gpu(self, name):
        """It hides the GPU from all ranks, which find it nevertheless."""
        home = self.folder / f"{name}-home"
        (home / "bin").mkdir(parents=True)
        for part in ("lib", "share", *(["libs"] if (HOME / "libs").exists() else [])):
            (home / part).symlink_to(HOME / part)
        for program in ("dlrun", "dlrun-agent"):
            shutil.copy2(HOME / "bin" / program, home / "bin")
        train = home / "bin/dlrun-train"
        train.write_text(f'#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0 NCCL_HOSTID="$DLRUN_RANK"\nexec "{HOME}/bin/dlrun-train" "$@"\n')
        train.chmod(0o755)
        return str(home / "bin/dlrun")

    def events(self, run, name):
        path = self.folder / run / "events.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["event"] == name]

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def await_state(self, process, name, condition):
        while not condition():
            self.assertIsNone(process.poll(), self.log(name))
            time.sleep(0.01)

    def is_saved(self, run):
        return any("saved" in event["report"] for event in self.events(run, "report"))

    def launched_and_killed(self, name, epochs, victim):
        """A training of two ranks whose first checkpoint is written, and one of which was killed then."""
        process = self.launched(name, 2, epochs, "elastic: {min-ranks: 1}")
        self.await_state(process, name, lambda: self.is_saved(name))
        os.kill({event["rank"]: event["pid"] for event in self.events(name, "started")}[victim], signal.SIGKILL)
        return process

    def check_as_the_whole(self, name):
        self.assertEqual(self.bits(self.folder / f"{name}-ckpt"), self.bits(self.folder / "whole-ckpt"))
        self.assertEqual(self.figures(self.folder / name), self.figures(self.folder / "whole"))

    def test_a_killed_rank_is_lost_and_no_bit(self):
        self.assertEqual(self.launched("whole", 1, 6).wait(LONGEST), 0, self.log("whole"))
        for victim in (1, 0):
            name = f"without-{victim}"
            process = self.launched_and_killed(name, 6, victim)
            killed = time.time()
            self.await_state(process, name, lambda: self.events(name, "went_on"))
            seen = time.time() - killed
            self.assertEqual(process.wait(LONGEST), 0, self.log(name))
            told = [round(event["seconds"], 2) for event in self.events(name, "went_on")]
            print(f"--- rank {victim} of 2 killed: the next step was complete {told} s later ({seen:.2f} s as seen here)", flush=True)
            self.assertLess(seen, 5)
            self.check_as_the_whole(name)

    def test_a_rank_that_was_killed_comes_back(self):
        """Of two, and of one of them: another rank takes its place and the state from the one that is left."""
        self.assertEqual(self.launched("whole", 1, 30).wait(LONGEST), 0, self.log("whole"))
        for victim in (1, 0):
            name = f"again-{victim}"
            process = self.launched_and_killed(name, 30, victim)
            self.await_state(process, name, lambda: self.events(name, "joined"))
            self.await_state(process, name, lambda: len(self.events(name, "went_on")) > 1)
            self.assertEqual(process.wait(LONGEST), 0, self.log(name))
            waits = [round(event["seconds"], 2) for event in self.events(name, "went_on")]
            print(f"--- rank {victim} of 2 killed and replaced: {self.events(name, 'joined')}; steps complete {waits} s after", flush=True)
            self.check_as_the_whole(name)

    def test_a_rank_that_is_slow_is_named(self):
        process = self.launched("slow", 2, 100000)
        self.await_state(process, "slow", lambda: self.is_saved("slow"))
        pid = {event["rank"]: event["pid"] for event in self.events("slow", "started")}[1]
        over = threading.Event()

        def hold_up():
            while not over.is_set():
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.03)
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.01)

        holding = threading.Thread(target=hold_up)
        holding.start()
        end, slow = time.time() + 60, []
        while not slow and time.time() < end:
            asked = subprocess.run([DLRUN, "status", "slow", "--json"], cwd=self.folder, capture_output=True, text=True, check=False)
            slow = json.loads(asked.stdout).get("stragglers") or [] if asked.returncode == 0 else []
            time.sleep(0.2)
        over.set()
        holding.join()
        subprocess.run([DLRUN, "stop", "slow"], cwd=self.folder, check=False, capture_output=True)
        process.wait(LONGEST)
        print(f"--- stragglers: {slow}", flush=True)
        self.assertEqual([one["rank"] for one in slow], [1], self.log("slow"))

    def test_the_order_of_the_shards_costs_little(self):
        data = {"format": "synthetic", "shape": [3, 224, 224], "classes": 1000, "samples": 1024}
        medians = {}
        for count, shards in ((1, None), (1, 1), (2, None), (2, 2)):
            self.setUp()
            world = self.ranks({}, count, model="resnet50", data=data, batch=64, precision="bf16", epochs=None, schedule=PLAIN_RATE,
                               benchmark={"warmup": 10, "steps": 40, "repeat": 3}, **({} if shards is None else {"shards": shards}))
            codes = world.wait(LONGEST)
            self.assertEqual(codes, [0] * count, world.text(0))
            medians[count, shards] = float(re.search(r"step: ([\d.]+) ms by the median", world.text(0))[1])
            print(f"--- {count} GPUs, {shards} shards: {re.search('bound: .*', world.text(0))[0]}", flush=True)
        for count in (1, 2):
            plain, ordered = medians[count, None], medians[count, count]
            print(f"--- resnet50, batch 64, bf16, {count} GPUs: {ordered:.2f} ms with shards, {plain:.2f} ms without: {ordered / plain:.3f} x", flush=True)


if __name__ == "__main__":
    main()
