#!/usr/bin/env python3
"""A small transformer on a GPU against PyTorch: loss, every gradient, three steps, and the scores of the next token, for GPT's and
Llama's form, in f32 and bf16, with shared heads of keys, and with sizes that fill no vector. PROGRAM: transformer-values."""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.nn.functional as F

PROGRAM = sys.argv[1]
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cuda"
# form, layers, heads, key heads, features, vocabulary, length, batch
CASES = [("gpt", 2, 4, 4, 64, 300, 32, 4), ("gpt", 1, 3, 3, 36, 77, 19, 3), ("gpt", 2, 4, 4, 256, 1000, 128, 2),
         ("llama", 2, 4, 4, 64, 300, 32, 4), ("llama", 2, 8, 2, 128, 500, 64, 2), ("llama", 1, 3, 1, 30, 50, 11, 2)]
BOUNDS = {"f32": 2e-4, "bf16": 6e-2}  # of a gradient's distance, in its own length
failures = 0


def expect(right, what):
    global failures
    if not right:
        failures += 1
        print("FAILED:", what)


def load(path):
    image = open(path, "rb").read()
    size = struct.unpack("<Q", image[:8])[0]
    head = json.loads(image[8:8 + size])
    out = {}
    for name, info in head.items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        out[name] = numpy.frombuffer(image[8 + size + begin:8 + size + end], numpy.float32).reshape(info["shape"]).copy()
    return out


def norm(p, name, x, gpt):
    if gpt:
        return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * p[name + ".weight"]


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def rotate(x):
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def turned(x):  # [batch, heads, length, width]
    width, length = x.shape[-1], x.shape[-2]
    angles = torch.outer(torch.arange(length, dtype=x.dtype), 10000.0 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width))
    angles = torch.cat([angles, angles], -1)
    return x * angles.cos() + rotate(x) * angles.sin()


def attention(packed, heads, keys, gpt):
    batch, length, features = packed.shape
    width = features // (heads + 2 * keys)
    q, k, v = (part.reshape(batch, length, -1, width).transpose(1, 2)
               for part in packed.split([heads * width, keys * width, keys * width], -1))
    if not gpt:
        q, k = turned(q), turned(k)
    k, v = (part.repeat_interleave(heads // keys, 1) for part in (k, v))
    scores = q @ k.transpose(-1, -2) / width ** 0.5
    scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1)


def scores_of(p, tokens, form, layers, heads, keys):
    gpt = form == "gpt"
    x = p["tokens.weight"][tokens]
    if gpt:
        x = x + p["tokens.positions"][:tokens.shape[1]]
    for layer in range(layers):
        name = f"layer{layer}"
        packed = linear(p, name + ".qkv", norm(p, name + ".norm1", x, gpt))
        x = x + linear(p, name + ".out", attention(packed, heads, keys, gpt))
        n = norm(p, name + ".norm2", x, gpt)
        if gpt:
            inner = F.gelu(linear(p, name + ".up", n), approximate="tanh")
        else:
            inner = F.silu(linear(p, name + ".gate", n)) * linear(p, name + ".up", n)
        x = x + linear(p, name + ".down", inner)
    x = norm(p, "norm", x, gpt)
    return x @ p["tokens.weight" if gpt else "scores.weight"].T


def gradients(tensors, prefix, case):
    form, layers, heads, keys, *_ = case
    p = {name[len(prefix):]: torch.tensor(value, dtype=torch.float64, requires_grad=True)
         for name, value in tensors.items() if name.startswith(prefix) and name.endswith((".weight", ".bias", ".positions"))}
    tokens, labels = (torch.tensor(tensors[name]).long() for name in ("in", "labels"))
    scores = scores_of(p, tokens, form, layers, heads, keys)
    loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1))
    loss.backward()
    return loss.item(), {name: value.grad.numpy() for name, value in p.items()}, scores.detach().numpy(), p


def check(case, precision):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "values")
        subprocess.run([PROGRAM, DEVICE, precision, *map(str, case), path], check=True)
        tensors = load(path)
        subprocess.run([PROGRAM, DEVICE, precision, *map(str, case), path + "2"], check=True)
        again = load(path + "2")
    name, bound = f"{precision} {case}", BOUNDS[precision]
    expect(all(tensors[key].tobytes() == again[key].tobytes() for key in tensors), f"{name}: other bits in a second run")
    loss, wanted, _, p = gradients(tensors, "before.", case)
    losses = tensors["losses"]
    expect(abs(losses[0] - loss) < bound * loss * 0.1, f"{name}: loss {losses[0]}, PyTorch's {loss}")
    worst = ("", 0.0)
    for key, gradient in wanted.items():
        got = (tensors["before." + key].astype(numpy.float64) - tensors["after." + key]).reshape(gradient.shape)
        length = numpy.linalg.norm(gradient) + 1e-9
        distance = numpy.linalg.norm(got - gradient) / length
        # What a value loses is known to half a unit of its last place.
        floor = numpy.linalg.norm(tensors["before." + key]) * 6e-8 / length
        worst = max(worst, (key, distance), key=lambda pair: pair[1])
        expect(distance < bound + floor, f"{name}: the gradient of {key} is off by {distance:.2e}, floor {floor:.1e}")
    last_loss, _, scores, _ = gradients(tensors, "last.", case)
    expect(abs(losses[3] - last_loss) < bound * last_loss * 0.2, f"{name}: loss after 3 steps {losses[3]}, PyTorch's {last_loss}")
    there = scores[:, case[6] // 2]
    off = numpy.linalg.norm(tensors["scores"] - there) / numpy.linalg.norm(there)
    expect(off < bound, f"{name}: the next token's scores are off by {off:.2e}")
    if precision == "f32":
        right = (scores.argmax(-1) == tensors["labels"]).sum()
        expect(abs(losses[4] - right) <= 1, f"{name}: {losses[4]} right answers, PyTorch has {right}")
    print(f"{name}: loss {losses[0]:.4f}, worst gradient {worst[0]} {worst[1]:.1e}, scores {off:.1e}")


for case in CASES:
    for precision in ("f32", "bf16"):
        check(case, precision)
print(f"{failures} failures")
sys.exit(1 if failures else 0)
