#!/usr/bin/env python3
"""A language model trained on a GPU: its loss falls, what is interrupted ends with the bits of the whole, in f32 and bf16, with
clipping and accumulation, and a CPU evaluates and continues a text by its checkpoint. PROGRAM: dlrun-train."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import trainings


class Language(trainings.Trainings):
    def tool(self, *arguments):
        return subprocess.run([trainings.TRAIN, *arguments], cwd=self.folder, text=True, stdout=subprocess.PIPE, check=True,
                              timeout=trainings.LONGEST).stdout

    def train(self, epochs, **more):
        settings = {"model": {"name": "small", "transformer": {"layers": 2, "heads": 4, "features": 128, "context": 64}},
                    "data": {"format": "tokens", "dir": str(self.folder / "tokens"), "context": 64}, "batch": 32, "epochs": epochs,
                    "optimizer": {"name": "adamw", "lr": 0.003}, "schedule": {"decay": "none"}, "clip-norm": 1, "accumulate": 2,
                    **more}
        return self.run_one(**settings)

    def bits(self):
        newest = max((self.folder / "ckpt").glob("step-*"))
        return newest.name, [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(newest.glob("*.safetensors"))]

    def check(self, precision):
        trainings.prepare_tokens(self.folder, 4000)
        self.train(2, precision=precision)
        whole = self.bits()
        os.rename(self.folder / "ckpt", self.folder / f"whole-{precision}")
        self.train(1, precision=precision)
        self.train(2, precision=precision)
        self.assertEqual(self.bits(), whole)
        losses = [line["validation_loss"] for line in self.metrics() if "validation_loss" in line]
        self.assertLess(losses[-1], 1.5)
        evaluated = json.loads(self.tool("--evaluate", "tokens", "--checkpoint", "ckpt"))
        self.assertAlmostEqual(evaluated["loss"], losses[-1], 1 if precision == "bf16" else 3)
        text = self.tool("--sample", "the ", "--checkpoint", "ckpt", "--length", "60")
        known = [word for word in text.split()[:-1] if word in trainings.WORDS]
        self.assertGreater(len(known), len(text.split()) // 2, text)

    def test_f32(self):
        self.check("f32")

    def test_bf16(self):
        self.check("bf16")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    trainings.main()
