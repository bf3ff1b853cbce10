#!/usr/bin/env python3
"""A model that was trained is evaluated, predicts, leaves as safetensors and ONNX, and starts another training."""
import json
import os
import random
import struct
import subprocess

import numpy
import torch

import images_test
import onnx_reader
import support

JOB = """\
framework: builtin
train:
  model:
    name: flowers
    layers:
      - {{convolution: 8, kernel: 3, padding: 1, bias: false, name: first}}
      - {{batch-norm: , name: norm}}
      - relu
      - {{convolution: 8, kernel: [1, 5], padding: [0, 2], stride: 2, name: wide}}
      - {{leaky-relu: 0.1}}
      - {{average-pool: 2, name: half}}
      - {{max-pool: 2, from: wide, name: other}}
      - {{concat: [half, other]}}
      - gelu
      - {{dropout: 0.2}}
      - global-average-pool
      - {{fully-connected: 12, name: hidden}}
      - tanh
      - {{fully-connected: classes, name: head}}
  data: {{format: images, dir: {data}, size: 16, mean: [0.5, 0.4, 0.3], std: 0.25}}
  batch: 16
  epochs: {epochs}
  optimizer: {{lr: 0.05, momentum: 0.9}}
{more}checkpoint: {{dir: {checkpoint}}}
"""


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    out = {}
    for name, about in json.loads(content[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in about["data_offsets"])
            out[name] = numpy.frombuffer(content[begin:end], "<f4").reshape(about["shape"])
    return out


class Models(support.Case):
    def setUp(self):
        super().setUp()
        images_test.make_photos(os.path.join(self.folder, "photos"))

    def train(self, name, epochs, more="", data="photos"):
        job = self.write(name + ".yaml", JOB.format(data=data, epochs=epochs, more=more, checkpoint="ckpt-" + name))
        return self.dlrun("--run-dir", "run-" + name, job)

    def tool(self, *arguments):
        done = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), *arguments], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_a_trained_model_is_evaluated_predicts_and_leaves(self):
        code, _, err = self.train("flowers", 4)
        self.assertEqual(code, 0, err)
        with open(os.path.join(self.folder, "run-flowers", "record.json"), encoding="utf-8") as file:
            record = json.load(file)
        code, out, err = self.tool("--evaluate", "photos", "--checkpoint", "ckpt-flowers")
        self.assertEqual(code, 0, err)
        found = json.loads(out)
        self.assertEqual((found["images"], found["classes"], found["top5"]), (16, ["aster", "tulip"], 1))
        self.assertAlmostEqual(found["top1"], record["result"]["test_accuracy"], 4)
        self.assertAlmostEqual(found["loss"], record["result"]["test_loss"], 3)
        self.assertEqual([sum(row) for row in found["confusion"]], [8, 8])

        pixels = random.Random(2).randbytes(16 * 16 * 3)
        images_test.png(os.path.join(self.folder, "one.png"), 16, 16, pixels)
        code, out, err = self.tool("--predict", "one.png", "photos/test/aster/001.png", "--checkpoint", "ckpt-flowers")
        self.assertEqual(code, 0, err)
        one, flower = json.loads(out)["predictions"]
        self.assertEqual(flower["class"], ["aster", "tulip"][flower["label"]])
        self.assertAlmostEqual(sum(each["score"] for each in flower["top"]), 1, 4)

        code, out, err = self.tool("--export", "flowers.onnx", "--checkpoint", "ckpt-flowers")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"wrote flowers.onnx: flowers-[0-9a-f]{8} of step 16, [0-9]+ bytes")
        image = torch.tensor(numpy.frombuffer(pixels, "u1").reshape(16, 16, 3).transpose(2, 0, 1).copy()).float() / 255
        image = (image - torch.tensor([0.5, 0.4, 0.3])[:, None, None]) / 0.25
        scores = onnx_reader.run(os.path.join(self.folder, "flowers.onnx"), image[None].repeat(3, 1, 1, 1))
        expected = {each["label"]: each["score"] for each in one["top"]}
        for label, score in enumerate(torch.softmax(scores[2], 0).tolist()):
            self.assertAlmostEqual(score, expected[label], 4)

    def test_weights_start_another_training_with_a_new_head_and_frozen_layers(self):
        self.assertEqual(self.train("first", 1)[0], 0)
        self.assertEqual(self.tool("--export", "w.safetensors", "--checkpoint", "ckpt-first")[0], 0)
        images_test.make_photos(os.path.join(self.folder, "more"))
        for part in ("train", "test"):
            os.rename(os.path.join(self.folder, "more", part, "tulip"), os.path.join(self.folder, "more", part, "rose"))
            os.makedirs(os.path.join(self.folder, "more", part, "tulip"))
            for name in sorted(os.listdir(os.path.join(self.folder, "more", part, "rose")))[::2]:
                os.rename(*(os.path.join(self.folder, "more", part, kind, name) for kind in ("rose", "tulip")))
        code, out, err = self.train("whole", 1, "  init-from: w.safetensors\n", "more")
        self.assertEqual(code, 65, out + err)
        self.assertIn("2 tensors of the model cannot be taken from it", out + err)
        self.assertIn("head.weight is [2, 12] in the file, [3, 12] in the model", out + err)
        code, out, err = self.train("tuned", 1, "  init-from: {file: w.safetensors, skip: [head.*]}\n  freeze: [first.*, 'norm.[wb]*']\n", "more")
        self.assertEqual(code, 0, out + err)
        self.assertIn("initialized, not read: head.weight, head.bias", out)
        before = read_safetensors(os.path.join(self.folder, "w.safetensors"))
        after = read_safetensors(os.path.join(self.folder, "ckpt-tuned", "step-00000004", "model.safetensors"))
        for name, same in (("first.weight", True), ("norm.weight", True), ("norm.running_mean", False), ("wide.weight", False)):
            self.assertEqual(numpy.array_equal(before[name], after[name]), same, name)
        os.rename(os.path.join(self.folder, "w.safetensors"), os.path.join(self.folder, "moved.safetensors"))
        os.rename(os.path.join(self.folder, "run-tuned"), os.path.join(self.folder, "run-before"))
        code, out, err = self.train("tuned", 2, "  init-from: {file: w.safetensors, skip: [head.*]}\n  freeze: [first.*, 'norm.[wb]*']\n", "more")
        self.assertEqual(code, 0, out + err)  # from its checkpoint
        self.assertNotIn("initialized, not read", out)
        code, out, err = self.train("typo", 1, "  freeze: [frist.*]\n")
        self.assertEqual(code, 65, out + err)
        self.assertRegex(out + err, r"yaml:\d+:\d+: train.freeze: no parameter is named 'frist.\*'")
        self.assertNotIn("[worker 0]", out + err)
        code, out, err = self.train("typo-of-skip", 1, "  init-from: {file: w.safetensors, skip: ['*.running_var', haed.*]}\n")
        self.assertEqual(code, 65, out + err)
        self.assertRegex(out + err, r"yaml:\d+:\d+: train.init-from.skip: no tensor is named 'haed.\*'")

    def test_mistakes(self):
        self.assertEqual(self.train("first", 1)[0], 0)
        for words, code, said in ((["--predict", "x.png"], 64, "--checkpoint DIR, of the model, is missing"),
                                  (["--predict", "--checkpoint", "ckpt-first"], 64, "--predict needs images"),
                                  (["--predict", "x.png", "--checkpoint", "ckpt-first"], 65, "x.png: "),
                                  (["--predict", "x.png", "--checkpoint", "photos"], 65, "photos: has no checkpoint"),
                                  (["--export", "m.pt", "--checkpoint", "ckpt-first"], 64, "--export: 'm.pt' must end in .safetensors or .onnx"),
                                  (["--evaluate", "nowhere", "--checkpoint", "ckpt-first"], 65, "nowhere: is not a folder")):
            found, _, err = self.tool(*words)
            self.assertEqual(found, code, err)
            self.assertIn(said, err)


if __name__ == "__main__":
    support.main()
