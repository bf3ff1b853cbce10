#!/usr/bin/python3
"""Runs a graph that pytorch_test.cpp wrote in PyTorch (CPU, double) and compares loss, scores, running statistics
and every gradient with ours. A line "FOLDER<tab>TOLERANCE" on its input asks: graph.json there says what there is, each
tensor is a file of float32. It answers "right" or "wrong", from a process of its own for each, since PyTorch's start takes
seconds. Ours may be as far from exact figures as PyTorch's own f32 or bf16 is, and half as far again (twice
as far again in f32, where chance decides which ReLU falls to the other side), plus the tolerance.
Each figure that is too far off is told on stderr."""
import json
import os
import sys
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F

torch.set_num_threads(1)


def next_question():
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            folder, tolerance = line.rstrip("\n").split("\t")
            return Path(folder), float(tolerance)
        _, status = os.waitpid(child, 0)
        print("wrong" if status else "right", flush=True)
    sys.exit(0)


folder, tolerance = next_question()
if (folder / "gpt2.json").exists():
    import hugging_face
    sys.exit(0 if hugging_face.agrees(folder, tolerance) else 1)


def farthest_apart(ours, theirs):
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-3)).item()


def check_updates(job):
    """updates.json: an optimizer by PyTorch's name. Gradients are given; every value and all state must be PyTorch's."""
    def there(name, tensor):
        return torch.from_numpy(numpy.fromfile(folder / name, numpy.float32).reshape(tensor["shape"]).copy()).double()

    values = {t["name"]: torch.nn.Parameter(there("start." + t["name"], t)) for t in job["tensors"]}
    decays = [values[t["name"]] for t in job["tensors"] if t["decays"]]
    exempt = [values[t["name"]] for t in job["tensors"] if not t["decays"]]
    groups = [{"params": decays}, {"params": exempt, "weight_decay": 0}]
    optimizer = getattr(torch.optim, job["optimizer"])([g for g in groups if g["params"]], **job["arguments"])
    model = torch.nn.ParameterList(values.values())
    kept = job["average"]
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda mean, value, _: kept * mean + (1 - kept) * value)
    for update in range(job["updates"]):
        for t in job["tensors"]:
            values[t["name"]].grad = job["scale"] * there(f"gradient.{update}.{t['name']}", t)
        optimizer.step()
        average.update_parameters(model)
    wrong = 0
    for t, averaged in zip(job["tensors"], average.module):
        value = values[t["name"]]
        figures = {"": value.detach(), ".ema": averaged.detach(), **{ours: optimizer.state[value][theirs] for ours, theirs in job["state"].items()}}
        for suffix, theirs in figures.items():
            error = farthest_apart(there("end." + t["name"] + suffix, t), theirs)
            if not error <= tolerance:
                wrong += 1
                print(f"{t['name']}{suffix}: relative difference {error:.3g} is above {tolerance:.3g}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if (folder / "updates.json").exists():
    check_updates(json.loads((folder / "updates.json").read_text()))
job = json.loads((folder / "graph.json").read_text())


kind = torch.float64  # of all figures: switched to float32 for PyTorch's own rounding


def load(name, shape):
    return torch.from_numpy(numpy.fromfile(folder / name, numpy.float32).reshape(shape).copy()).to(kind)


state = {}
parameters = [t["name"] for t in job["tensors"] if t["role"] == "parameter"]


def load_state():
    for tensor in job["tensors"]:
        state[tensor["name"]] = load("state." + tensor["name"], tensor["shape"])
        if tensor["role"] == "parameter":
            state[tensor["name"]].requires_grad_()



def rotated(x, base):
    """As transformers' apply_rotary_pos_emb: x is [batch, heads, positions, width]."""
    width = x.shape[-1]
    frequencies = 1 / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), frequencies)
    angles = torch.cat((angles, angles), dim=-1)
    turned = torch.cat((-x[..., width // 2:], x[..., :width // 2]), dim=-1)
    return x * angles.cos().to(x.dtype) + turned * angles.sin().to(x.dtype)


def attention(x, heads, key_heads, rotary_base, mask=None):
    rows, positions, features = x.shape
    width = features // (heads + 2 * key_heads)
    query, key, value = (part.reshape(rows, positions, -1, width).transpose(1, 2)
                         for part in x.split((heads * width, key_heads * width, key_heads * width), -1))
    if rotary_base > 0:
        query, key = rotated(query, rotary_base), rotated(key, rotary_base)
    key, value = (part.repeat_interleave(heads // key_heads, 1) for part in (key, value))
    scores = query @ key.transpose(2, 3) / width ** 0.5
    later = torch.ones(positions, positions, dtype=torch.bool).triu(1)
    shares = scores.masked_fill(later, float("-inf")).softmax(-1)
    if mask is not None:
        shares = shares * load(mask, shares.shape)
    return (shares @ value).transpose(1, 2).reshape(rows, positions, heads * width)


def run(node, inputs, training):
    what, name, x = node["kind"], node["name"], inputs[0] if inputs else None

    def of(part):
        value = state.get(f"{name}.{part}")
        return value.detach() if node["frozen"] and value is not None else value

    if what == "input" and tokens.numel() > 0:
        return tokens
    if what == "input":
        return load("images", [job["batch"]] + node["shape"])
    if what == "convolution" and x.dim() == 5:
        return F.conv3d(x, of("weight"), of("bias"), node["stride"], node["padding"], groups=node["groups"])
    if what == "convolution":
        return F.conv2d(x, of("weight"), of("bias"), node["stride"],
                        (node["padding"], node["padding_width"]), groups=node["groups"])
    if what == "transposed convolution":
        return F.conv_transpose2d(x, of("weight"), of("bias"), node["stride"], node["padding"], node["output_padding"])
    if what == "leaky relu":
        return F.leaky_relu(x, node["slope"])
    if what == "tanh":
        return torch.tanh(x)
    if what == "gelu":
        return F.gelu(x, approximate=node["approximate"])
    if what == "noise":
        return load("noise.train" if training else "noise.shown", [job["batch"]] + node["shape"])
    if what == "reshape":
        return x.reshape([job["batch"]] + node["shape"])
    if what == "detach":
        return x.detach()
    if what == "fully connected":
        return F.linear(x.flatten(1), of("weight"), of("bias"))
    if what == "max pool":
        pool = F.max_pool3d if x.dim() == 5 else F.max_pool2d
        return pool(x, node["window"], node["stride"], node["padding"], ceil_mode=node["keeps_edge"])
    if what == "window average pool":
        pool = F.avg_pool3d if x.dim() == 5 else F.avg_pool2d
        return pool(x, node["window"], node["stride"], node["padding"], node["keeps_edge"], node["counts_padding"])
    if what == "local response norm":
        return F.local_response_norm(x, node["size"], node["alpha"], node["beta"], node["bias"])
    if what == "concat":
        return torch.cat(inputs, 1)
    if what == "average pool":
        return F.adaptive_avg_pool3d(x, 1) if x.dim() == 5 else F.adaptive_avg_pool2d(x, 1)
    if what == "batch norm":
        mean, variance = state[name + ".running_mean"], state[name + ".running_var"]
        if node["frozen"]:
            mean, variance = mean.clone(), variance.clone()
        return F.batch_norm(x, mean, variance, of("weight"), of("bias"), training, node["momentum"], node["epsilon"])
    if what == "relu":
        return F.relu(x)
    if what == "dropout":
        return x * load(f"mask.{node['number']}", x.shape) if training else x
    if what == "embedding":
        positions = of("positions")
        return F.embedding(x, of("weight")) + (0 if positions is None else positions[:x.shape[1]])
    if what == "layer norm":
        return F.layer_norm(x.to(kind), x.shape[-1:], of("weight"), of("bias"), node["epsilon"])
    if what == "RMS norm":
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + node["epsilon"]) * of("weight")
    if what == "linear":
        return F.linear(x, of("weight"), of("bias"))
    if what == "SwiGLU":
        return F.silu(x) * inputs[1]
    if what == "attention":
        mask = f"mask.{node['number']}" if training and node["dropout"] > 0 else None
        return attention(x, node["heads"], node["key_heads"], node["rotary_base"], mask)
    if what == "vocabulary loss":
        return F.linear(x, of("weight"))
    if what == "add":
        return inputs[0] + inputs[1]
    if what == "flatten":
        return x.flatten(1)
    raise SystemExit(f"unknown operator {what}")


def scores(training):
    """Of every head: [(its node, scores)], the main one last."""
    values, heads = [], []
    for node in job["nodes"]:
        inputs = [values[i] for i in node["inputs"]]
        is_loss = node["kind"] in ("loss", "sigmoid cross entropy", "vocabulary loss", "target loss")
        if node["kind"] == "vocabulary loss":
            inputs = [run(node, inputs, training).flatten(0, 1)]
        values.append(None if is_loss else run(node, inputs, training))
        if is_loss:
            heads.append((node, inputs[0]))
    return heads


def load_numbers(name):
    return torch.from_numpy(numpy.fromfile(folder / name, numpy.int32).astype("int64"))


labels, tokens = load_numbers("labels"), load_numbers("tokens").reshape(job["batch"], -1)


def loss(node, of, training):
    if node["kind"] == "vocabulary loss":
        return F.cross_entropy(of.to(kind), labels, ignore_index=-1, reduction="sum") / job["labels per row"]
    if node["kind"] == "target loss":
        targets = torch.from_numpy(numpy.fromfile(folder / "targets", numpy.float32)).to(kind).reshape(of.shape)
        measure = {"mean-squared-error": F.mse_loss, "mean-absolute-error": F.l1_loss,
                   "huber": lambda *of, reduction: F.huber_loss(*of, reduction=reduction, delta=node["delta"]),
                   "sigmoid-cross-entropy": F.binary_cross_entropy_with_logits}[node["measure"]]
        return (measure(of.to(kind), targets, reduction="none").mean(1) * (labels >= 0)).sum()
    if node["kind"] == "loss":
        smoothing = node["smoothing"] if training else 0
        if training and job["mixed"]:
            own = torch.from_numpy(numpy.fromfile(folder / "own_weights", numpy.float32)).to(kind)[:, None]
            others = torch.from_numpy(numpy.fromfile(folder / "other_labels", numpy.int32).astype("int64"))
            classes = of.shape[1]
            targets = own * F.one_hot(labels.clamp(min=0), classes) + (1 - own) * F.one_hot(others, classes)
            rows = F.cross_entropy(of.to(kind), targets.to(kind), reduction="none", label_smoothing=smoothing)
            return (rows * (labels >= 0)).sum()
        return F.cross_entropy(of.to(kind), labels, ignore_index=-1, reduction="sum", label_smoothing=smoothing)
    counts, logit = (labels >= 0).to(kind), of.to(kind).flatten()
    targets = {"labels": labels.clamp(min=0).to(kind), "fake": torch.zeros_like(logit)}
    target = targets.get(node["target"], torch.ones_like(logit))
    return F.binary_cross_entropy_with_logits(logit, target, counts, reduction="sum")


def reported(losses):
    """By name: the main head's, or the discriminator's and the generator's of a GAN."""
    if "target" not in losses[-1][0]:
        return {"loss": losses[-1][1]}
    return {"loss": sum(l for node, l in losses if node["target"] != "generator"),
            "generator loss": sum(l for node, l in losses if node["target"] == "generator")}


def everything():
    """All figures of one evaluation and one training step, by name."""
    load_state()
    def losses(training):
        return [(node, loss(node, of, training)) for node, of in scores(training)]

    found = {"evaluation " + name: torch.as_tensor(l).detach() for name, l in reported(losses(False)).items()}
    heads = losses(True)
    found.update(("training " + name, torch.as_tensor(l).detach()) for name, l in reported(heads).items())
    total = sum(node.get("weight", 1) * loss for node, loss in heads)
    gradients = torch.autograd.grad(total / job["batch"], [state[name] for name in parameters])
    found.update(("gradient." + name, gradient) for name, gradient in zip(parameters, gradients))
    found.update(("after." + name, state[name]) for name in state if name not in parameters)
    found.update(sgd(job["sgd"]["steps"], job["sgd"]["rate"]))
    return found


def sgd(steps, rate):
    """The losses before each of some steps, always of the same batch, and the parameters after them."""
    found = {}
    for step in range(steps):
        total = sum(loss(node, of, True) for node, of in scores(True))
        found[f"sgd loss {step}"] = total.detach()
        gradients = torch.autograd.grad(total / job["batch"], [state[name] for name in parameters])
        for name, gradient in zip(parameters, gradients):
            state[name] = (state[name] - rate * gradient).detach().requires_grad_()
    if steps > 0:
        found.update(("sgd." + name, state[name].detach()) for name in parameters)
    return found


def distance(left, right):
    left, right = left.double().flatten(), right.double().flatten()
    return ((left - right).norm() / max(right.norm().item(), 1e-3 * right.numel() ** 0.5)).item()


exact = everything()
kind = torch.float32
with torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bf16"):
    rounded = everything()
farther = 1.5 if job["precision"] == "bf16" else 3
wrong = 0
for name, theirs in exact.items():
    ours = torch.tensor(job[name]) if name in job else load(name, theirs.shape)
    allowed = tolerance + farther * distance(rounded[name], theirs)
    error = distance(ours, theirs)
    if not error <= allowed:
        wrong += 1
        print(f"{name}: relative difference {error:.3g} is above {allowed:.3g}", file=sys.stderr)
sys.exit(1 if wrong else 0)
