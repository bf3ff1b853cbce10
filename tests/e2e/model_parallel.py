"""Shared by the tests of models that ranks divide: a small language model, its data, and its losses."""
import json
import os
import subprocess

import language_test
import support

JOB = """\
name: divided
framework: builtin
resources: {nodes: 1}
train:
  model:
    name: tiny
    transformer: {layers: 1, heads: 4, key-heads: 4, features: 32, hidden: 48, norm: rms, activation: swiglu, positions: rotary, tied: false}
  data: {format: tokens, dir: tokens, context: 16}
  device: cpu
  global-batch: 16
  epochs: 1
  optimizer: {name: adamw, lr: 0.003, weight-decay: 0.1}
  clip-norm: 1.0
"""



class ModelParallel(support.Case):
    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "texts"))
        self.write("texts/book.txt", language_test.made_text(3000))
        self.tool("--prepare", "texts", "--into", "tokens", "--tokens", "bytes", "--validation", "0.1")
        self.job = self.write("job.yaml", JOB)

    def tool(self, *arguments):
        done = subprocess.run([os.path.join(os.environ["DLRUN_BIN"], "dlrun-train"), *arguments], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def train(self, run, ranks, tensor, *more):
        code, out, err = self.dlrun("--quiet", "--no-bind", "--tasks-per-node", str(ranks), "--tensor-parallel", str(tensor), "--run-dir", run, *more,
                                    self.job)
        self.assertEqual(code, 0, err)
        return out, self.losses(run)

    def losses(self, run):
        lines = [json.loads(line) for line in self.read(f"{run}/metrics.jsonl").splitlines()]
        return [line["loss"] for line in lines if "loss" in line]

    def assert_alike(self, losses, expected):
        self.assertEqual(len(losses), len(expected))
        self.assertGreater(len(losses), 1)
        for step, (one, other) in enumerate(zip(losses, expected)):
            self.assertAlmostEqual(one, other, delta=2e-4 * other, msg=f"step {step}")

    def assert_refused(self, changes, *flags):
        """Before a rank starts: (words of the job, words in their place, what is said)."""
        for here, there, said in changes:
            self.write("job.yaml", JOB.replace(here, there))
            code, out, err = self.dlrun("--no-bind", *flags, self.job)
            self.assertEqual(code, 65, err)
            self.assertRegex(err, said)
            self.assertNotIn("[worker", out)
