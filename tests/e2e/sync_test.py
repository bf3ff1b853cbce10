#!/usr/bin/env python3
"""Communication in fewer steps: three ranks end with the weights and the momentum that PyTorch has where three models are averaged after
the same steps, a run that goes on from a checkpoint ends with the same bits, and what it does not go with is refused."""
import json
import os
import pathlib
import shutil
import struct

import numpy
import torch

import support
from models_test import read_safetensors

RANKS, BATCH, SAMPLES, EPOCHS, EVERY, SEED = 3, 4, 100, 3, 4, 1
RATE, MOMENTUM, DECAY = 0.05, 0.9, 0.001
BITS = 2 ** 64 - 1
JOB = f"""\
framework: builtin
resources: {{tasks-per-node: {RANKS}}}
checkpoint: {{dir: ckpt, every: 1steps, keep: 1000}}
train:
  model: {{name: small, layers: [{{fully-connected: 6, name: first}}, tanh, {{fully-connected: targets, name: last}}]}}
  data: {{format: numpy, dir: data, samples: x.npy, targets: y.npy, test-samples: x.npy, test-targets: y.npy}}
  init-from: start.safetensors
  batch: {BATCH}
  epochs: {EPOCHS}
  optimizer: {{name: sgd, lr: {RATE}, momentum: {MOMENTUM}, weight-decay: {DECAY}}}
  sync: {{every: {EVERY}, from: 1epochs}}
  device: cpu
  seed: {SEED}
"""


def mix(value, *more):
    """The keyed random numbers of runtime/base/keyed_random.hpp."""
    for following in more:
        value = mix(mix(value) ^ following)
    if more:
        return value
    value = (value + 0x9e3779b97f4a7c15) & BITS
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 & BITS
    value = (value ^ value >> 27) * 0x94d049bb133111eb & BITS
    return value ^ value >> 31


def order(epoch):
    """The samples of an epoch, as runtime/data/sample_order.hpp has them."""
    key, half = mix(SEED, 0x6f72646572, epoch), 1
    while 4 ** half < SAMPLES:
        half += 1

    def once(index):
        left, right = index >> half, index & (1 << half) - 1
        for number in range(6):
            left, right = right, left ^ mix(key, number, right) & (1 << half) - 1
        return left << half | right

    out = []
    for index in range(SAMPLES):
        index = once(index)
        while index >= SAMPLES:
            index = once(index)
        out.append(index)
    return out


def twin(start, x, y):
    """The same training by PyTorch: a model per rank."""
    models, optimizers = [], []
    for _ in range(RANKS):
        model = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
        model.load_state_dict({f"{layer}.{kind}": torch.tensor(start[f"{name}.{kind}"]) for layer, name in ((0, "first"), (2, "last"))
                               for kind in ("weight", "bias")})
        models.append(model)
        optimizers.append(torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY))
    step = 0
    for epoch in range(EPOCHS):
        samples, seen = order(epoch), 0
        while seen < SAMPLES:
            rows = min(RANKS * BATCH, SAMPLES - seen)
            parts = [samples[seen + rows * rank // RANKS:seen + rows * (rank + 1) // RANKS] for rank in range(RANKS)]
            for model, optimizer, part in zip(models, optimizers, parts):
                mine = sum(parts, []) if epoch < 1 else part
                optimizer.zero_grad()
                if mine:
                    torch.nn.functional.mse_loss(model(torch.tensor(x[mine])), torch.tensor(y[mine])).backward()
                    optimizer.step()
            step, seen = step + 1, seen + rows
            if step % EVERY == 0 or seen == SAMPLES:
                average(models, optimizers)
    return models[0], optimizers[0]


def average(models, optimizers):
    for same in zip(*(model.parameters() for model in models)):
        states = [optimizer.state[value] for optimizer, value in zip(optimizers, same)]
        value = torch.stack([each.detach() for each in same]).mean(0)
        momentum = torch.stack([state["momentum_buffer"] for state in states]).mean(0)
        for each, state in zip(same, states):
            each.data.copy_(value)
            state["momentum_buffer"].copy_(momentum)


def write_safetensors(path, tensors):
    header, content = {}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(content), len(content) + values.nbytes]}
        content += values.tobytes()
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + content)


class Sync(support.Case):
    def train(self, run, text):
        code, out, err = self.dlrun("--run-dir", run, self.write(run + ".yaml", text))
        self.assertEqual(code, 0, out + err)
        return out

    def test_ranks_average_as_pytorch_does_and_go_on_with_the_same_bits(self):
        random = numpy.random.default_rng(7)
        x = random.normal(size=(SAMPLES, 5)).astype("float32")
        y = numpy.tanh(x @ random.normal(size=(5, 2))).astype("float32")
        os.mkdir(os.path.join(self.folder, "data"))
        for name, values in (("x", x), ("y", y)):
            numpy.save(os.path.join(self.folder, "data", name + ".npy"), values)
        start = {name: (random.normal(size=shape) * 0.5).astype("float32") for name, shape in
                 (("first.weight", (6, 5)), ("first.bias", (6,)), ("last.weight", (2, 6)), ("last.bias", (2,)))}
        write_safetensors(os.path.join(self.folder, "start.safetensors"), start)
        self.train("whole", JOB)
        # An epoch has 9 steps. Behind the first, ranks have the same weights after 12, 16, 18, 20, 24 and 27 alone.
        steps = sorted(int(name.split("-")[1]) for name in os.listdir(os.path.join(self.folder, "ckpt")) if name.startswith("step-"))
        self.assertEqual([step for step in steps if step > 9 and step not in (12, 16, 18, 20, 24, 27)], [])
        self.assertIn(27, steps)
        last = os.path.join(self.folder, "ckpt", "step-00000027")
        ours = {**read_safetensors(last + "/model.safetensors"), **read_safetensors(last + "/optimizer.safetensors")}
        model, optimizer = twin(start, x, y)
        for number, name in ((0, "first"), (2, "last")):
            for kind in ("weight", "bias"):
                value = getattr(model[number], kind)
                numpy.testing.assert_allclose(ours[f"{name}.{kind}"], value.detach().numpy(), rtol=1e-4, atol=1e-5)
                numpy.testing.assert_allclose(ours[f"{name}.{kind}.momentum"], optimizer.state[value]["momentum_buffer"].numpy(), rtol=1e-4,
                                              atol=1e-5)
        # Of those within an epoch the disk may have been too slow for any; the first that is due is always written.
        self.train("some", JOB.replace("dir: ckpt, every: 1steps", "dir: some, every: 12steps"))
        shutil.copytree(os.path.join(self.folder, "some", "step-00000012"), os.path.join(self.folder, "part", "step-00000012"))
        self.assertIn("/part/step-00000012: step 12, ", self.train("again", JOB.replace("dir: ckpt", "dir: part")))
        for file in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(pathlib.Path(self.folder, "part", "step-00000027", file).read_bytes(), pathlib.Path(last, file).read_bytes())

    def test_what_it_does_not_go_with_is_refused_by_name(self):
        job = JOB.replace("init-from: start.safetensors", "").replace("format: numpy, dir: data, samples: x.npy, targets: y.npy, test-samples: "
                                                                      "x.npy, test-targets: y.npy", "format: synthetic, samples: 64, shape: [1, 4, 4]")
        job = job.replace("fully-connected: targets", "fully-connected: classes")
        for more, wanted, said in (("elastic: {min-nodes: 1}", 65, "train.sync is set, and train.shards is set"),  # which elastic runs have
                                   ("parallel: {tensor: 3}", 65, "parallel.tensor is above 1, and train.sync is set")):
            code, out, err = self.dlrun("--run-dir", f"run-{more.split(chr(58))[0]}", self.write("job.yaml", job + more + "\n"))
            self.assertEqual(code, wanted, out + err)
            self.assertIn(said, out + err)


if __name__ == "__main__":
    support.main()
