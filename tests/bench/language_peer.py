"""What dlrun trains, in PyTorch: a transformer of GPT-2's form on token files, with dlrun's order of samples and learning
rates. Its weights leave under Hugging Face's names, so that dlrun can begin with them."""
import json
import math
import pathlib
import struct

import numpy
import torch
from torch import nn
from torch.nn import functional

HEADER = 64
MASK = (1 << 64) - 1


def mix(*values):
    """runtime/base/keyed_random.hpp"""
    def one(value):
        value = (value + 0x9E3779B97F4A7C15) & MASK
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
        return value ^ (value >> 31)

    key = values[0]
    for value in values[1:]:
        key = one(one(key) ^ value)
    return key


def order(samples, seed, epoch):
    """runtime/data/sample_order.cpp"""
    key, half = mix(seed, 0x6F72646572, epoch), 1
    while half < 31 and 1 << (2 * half) < samples:
        half += 1
    mask = (1 << half) - 1

    def once(index):
        left, right = index >> half, index & mask
        for turn in range(6):
            left, right = right, left ^ (mix(key, turn, right) & mask)
        return left << half | right

    for index in range(samples):
        index = once(index)
        while index >= samples:
            index = once(index)
        yield index


class Block(nn.Module):
    def __init__(self, heads, features):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(features, 3 * features), "c_proj": nn.Linear(features, features)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(features, 4 * features), "c_proj": nn.Linear(4 * features, features)})

    def attention(self, x):
        query, key, value = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.attn["c_attn"](x).chunk(3, -1))
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ value
        return self.attn["c_proj"](mixed.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp["c_proj"](functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self, layers, heads, features, positions, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, features), nn.Embedding(positions, features)
        self.h = nn.ModuleList(Block(heads, features) for _ in range(layers))
        self.ln_f = nn.LayerNorm(features)
        for name, parameter in self.named_parameters():  # as GPT-2 begins
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * layers) if name.endswith("c_proj.weight") else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return functional.linear(self.ln_f(x), self.wte.weight)


class Peer:
    """The training that a section `train` with data in `folder` is."""

    def __init__(self, section, folder):
        torch.manual_seed(section["seed"])
        self.section, self.context, self.batch = section, section["data"]["context"], section["batch"]
        data = pathlib.Path(folder, section["data"]["dir"])
        self.trained, self.validated = (self.windows(data, part) for part in ("train", "validation"))
        vocabulary = struct.unpack_from("<Q", next(data.glob("train-*.tokens")).read_bytes(), 24)[0]
        shape = section["model"]["transformer"]
        self.network = Transformer(shape["layers"], shape["heads"], shape["features"], self.context, vocabulary)

    def windows(self, data, part):
        stream = numpy.concatenate([numpy.frombuffer(path.read_bytes(), "<u2", offset=HEADER) for path in sorted(data.glob(f"{part}-*"))])
        count = (len(stream) - 1) // self.context
        stream = torch.from_numpy(stream[:count * self.context + 1].astype(numpy.int64))
        return stream[:-1].view(count, -1), stream[1:].view(count, -1)

    def write_weights(self, path):
        header, content = {}, b""
        for name, value in self.network.state_dict().items():
            if name.endswith(".weight") and (".attn." in name or ".mlp." in name):
                value = value.t()  # transformers' Conv1D
            numbers = value.contiguous().numpy().astype("<f4").tobytes()
            header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(content), len(content) + len(numbers)]}
            content += numbers
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + content)

    def loss(self, tokens, labels):
        return functional.cross_entropy(self.network(tokens).flatten(0, 1), labels.flatten())

    def rate(self, step, seen):
        """Warm-up in steps, then a cosine to the end of the training: runtime/train/schedule.cpp."""
        samples = len(self.trained[0])
        warmup = int(self.section["schedule"]["warmup"].removesuffix("steps"))
        behind = warmup * self.batch / samples
        progress = min(max((seen / samples - behind) / (1 - behind), 0), 1)
        return self.section["optimizer"]["lr"] * min(1, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * progress))

    def validation_loss(self):
        count = min(self.section["evaluate"]["batches"] * self.batch, len(self.validated[0]))
        with torch.no_grad():
            return self.loss(*(part[:count] for part in self.validated)).item()

    def train(self, steps):
        """One epoch: {step: validation loss} behind these steps."""
        optimizer = torch.optim.Adam(self.network.parameters(), betas=(0.9, self.section["optimizer"]["beta2"]))
        indices, seen, out = list(order(len(self.trained[0]), self.section["seed"], 0)), 0, {}
        for step in range(max(steps)):
            optimizer.param_groups[0]["lr"] = self.rate(step, seen)
            rows = torch.tensor(indices[seen:seen + self.batch])
            optimizer.zero_grad()
            self.loss(*(part[rows] for part in self.trained)).backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), self.section["clip-norm"])
            optimizer.step()
            seen += len(rows)
            if step + 1 in steps:
                out[step + 1] = self.validation_loss()
        return out
