#!/usr/bin/env python3
"""Texts become tokens, a language model and other texts; a training that resumes in the middle of an epoch has the same
bits; what the data or the model cannot be is refused before a rank starts."""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess

import support

WORDS = "the and of that light earth god said unto them which was in day night waters made".split()
JOB = """\
name: language
framework: builtin
resources: {nodes: 1, tasks-per-node: 2}
checkpoint: {dir: ckpt, every: 20steps, keep: 100}
train:
  model: {name: tiny, transformer: {layers: 1, heads: 2, features: 32, context: 24}}
  data: {format: tokens, dir: tokens, context: 16}
  batch: 8
  optimizer: {name: adam, lr: 0.01}
  evaluate: {every: 50steps, batches: 1}
"""


def made_text(words):
    draw = random.Random(1)
    lines = []
    while words > 0:
        lines.append(" ".join(draw.choice(WORDS) for _ in range(min(words, 12))) + ".\n")
        words -= 12
    return "".join(lines)


class Language(support.Case):
    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "texts"))
        self.write("texts/book.txt", made_text(7000))
        code, self.said, err = self.tool("--prepare", "texts", "--into", "tokens", "--tokens", "bytes", "--validation", "0.1")
        self.assertEqual(code, 0, err)
        self.job = self.write("job.yaml", JOB)

    def tool(self, *arguments):
        done = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), *arguments], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def bits(self, folder):
        newest = max(pathlib.Path(self.folder, folder).glob("step-*"))
        return newest.name, [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(newest.glob("*.safetensors"))]

    def test_a_text_becomes_tokens_a_model_and_a_text(self):
        self.assertRegex(self.said, r"^wrote \d+ training and \d+ validation tokens of 1 text into tokens: 2 files, a vocabulary of 257\n$")
        code, out, err = self.dlrun("--run-dir", "run", "--set", "train.epochs=4", "--set", "checkpoint.keep=2", self.job)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"\[worker 0\] found \d+ training and \d+ validation sequences of 16 tokens in ")
        self.assertRegex(out, r"\[worker 0\] step 50  validation loss [\d.]+  perplexity [\d.]+  accuracy [\d.]+ %\n")
        self.assertRegex(out, r"epoch 1/4 .* \d+ tokens/s ")
        lines = [json.loads(line) for line in self.read("run/metrics.jsonl").splitlines()]
        losses = [line["validation_loss"] for line in lines if "validation_loss" in line]
        self.assertGreater(len(losses), 2)
        self.assertLess(losses[-1], 2)  # 5.5 before the first step
        self.assertTrue(any("tokens_per_s" in line for line in lines))
        result = self.record()["result"]
        self.assertAlmostEqual(result["validation_loss"], losses[-1], 5)
        status = self.dlrun("status", "run")[1]
        self.assertRegex(status, r"progress .* \d+ tokens/s\n")
        self.assertIn(f"progress   step {result['steps']} of {result['steps']} (100 %)", status)  # the last one, not the last told

        code, out, err = self.tool("--evaluate", "tokens", "--checkpoint", "ckpt")
        self.assertEqual(code, 0, err)
        self.assertAlmostEqual(json.loads(out)["loss"], result["validation_loss"], 4)
        self.assertAlmostEqual(json.loads(out)["accuracy"], result["validation_accuracy"], 3)
        alone = pathlib.Path(self.folder, "alone")  # no training part
        shutil.copytree(pathlib.Path(self.folder, "tokens"), alone, ignore=shutil.ignore_patterns("train*"))
        self.assertEqual(self.tool("--evaluate", "alone", "--checkpoint", "ckpt"), (0, out, err))

        # Out and in under Hugging Face's names: a training that learns nothing more has the same loss.
        code, _, err = self.tool("--export", "weights.safetensors", "--checkpoint", "ckpt")
        self.assertEqual(code, 0, err)
        data = pathlib.Path(self.folder, "weights.safetensors").read_bytes()
        header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
        self.assertEqual(header["wpe.weight"]["shape"], [24, 32])
        self.assertEqual(header["h.0.attn.c_attn.weight"]["shape"], [32, 96])
        code, out, err = self.dlrun("--run-dir", "again", "--set", "train.init-from=weights.safetensors", "--set", "checkpoint.dir=other",
                                    "--set", "train.optimizer.lr=1e-9", self.job)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"16 tensors start from \S*weights.safetensors")
        again = json.loads(self.read("again/record.json"))["result"]
        self.assertAlmostEqual(again["validation_loss"], result["validation_loss"], 4)

        sample = ("--sample", "the earth", "--checkpoint", "ckpt", "--length", "60", "--temperature", "0.5")
        code, text, err = self.tool(*sample)
        self.assertEqual(code, 0, err)
        self.assertEqual(self.tool(*sample)[1], text)
        self.assertNotEqual(self.tool(*sample, "--seed", "2")[1], text)
        self.assertTrue(text.startswith("the earth"), text)
        known = sum(word in WORDS for word in re.findall(r"[a-z]+", text[9:]))
        self.assertGreater(known, 1, text)  # letters drawn at random make no word
        with open("/dev/full", "wb") as full:
            done = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), *sample], cwd=self.folder, stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("cannot write the standard output: No space left on device", done.stderr)
        code, _, err = self.tool("--sample", "", "--checkpoint", "ckpt")
        self.assertEqual(code, 64, err)
        self.assertIn("--sample: the text is empty", err)
        code, _, err = self.tool("--export", "m.onnx", "--checkpoint", "ckpt")
        self.assertEqual(code, 65, err)
        self.assertIn("has no form in ONNX\n  hint: write .safetensors", err)
        self.assertIn("--predict is for images", self.tool("--predict", "a.png", "--checkpoint", "ckpt")[2])

    def test_a_resume_in_the_middle_of_an_epoch_ends_with_the_same_bits(self):
        self.assertEqual(self.dlrun("--run-dir", "whole", self.job)[0], 0)
        first = min(pathlib.Path(self.folder, "ckpt").glob("step-*"))
        step = int(first.name[5:])
        shutil.copytree(first, os.path.join(self.folder, "half", first.name))
        code, out, err = self.dlrun("--run-dir", "rest", "--set", "checkpoint.dir=half", self.job)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, rf"resuming from \S+/{first.name}: step {step}, epoch 1, {16 * step} of \d+ samples seen")
        self.assertEqual(self.bits("half"), self.bits("ckpt"))

    def test_what_cannot_be_trained_is_refused_before_a_rank_starts(self):
        path = pathlib.Path(self.folder, "tokens", "train-00000.tokens")
        sound = path.read_bytes()

        def refused(*settings):
            code, _, err = self.dlrun("--run-dir", "bad", *(word for setting in settings for word in ("--set", setting)), self.job)
            self.assertEqual(code, 65, err)
            self.assertFalse(self.exists("bad/events.jsonl") and any(event["event"] == "started" for event in self.events("bad")))
            shutil.rmtree(os.path.join(self.folder, "bad"), ignore_errors=True)
            return err

        path.write_bytes(sound[:64 + 2 * 99] + struct.pack("<H", 300) + sound[64 + 2 * 100:])
        self.assertRegex(refused(), r"train-00000.tokens: token 300 at offset 262 is out of range: the vocabulary has 257")
        path.write_bytes(sound[:1001])
        self.assertRegex(refused(), r"the file ends at offset 1001, after 468 tokens")
        path.write_bytes(sound)
        other = path.with_name("train-00001.tokens")
        other.write_bytes(sound[:24] + struct.pack("<Q", 300) + sound[32:])
        self.assertRegex(refused(), r"train-00001.tokens: has a vocabulary of 300 tokens \(offset 24\), and \S+train-00000.tokens has 257")
        other.unlink()
        self.assertRegex(refused("train.data.context=25"), r"job.yaml:\d+:\d+: .*has 24 positions, and a sequence of the data has 25")
        self.assertRegex(refused("train.model.transformer.vocabulary=100"), r"--set train.model.transformer.vocabulary: .*has a vocabulary of 100 tokens, and the data of 257")
        self.assertRegex(refused("train.model=mnist-cnn"), r"tokens")
        self.assertRegex(refused("train.data=null", "train.data.format=idx", "train.data.dir=tokens"), r"train.evaluate is supported for tokens only")


if __name__ == "__main__":
    support.main()
