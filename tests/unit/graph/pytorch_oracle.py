#!/usr/bin/python3
"""Runs a graph that pytorch_test.cpp wrote in PyTorch (f32, CPU) and compares loss, scores, running statistics
and every gradient with ours. pytorch_oracle.py FOLDER TOLERANCE: graph.json says what there is, each tensor is
a file of float32. Our bf16 may be as far from exact figures as PyTorch's own bf16 is, and half as far again.
Prints each figure that is too far off; exit code 1 then."""
import json
import sys
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F

folder, tolerance = Path(sys.argv[1]), float(sys.argv[2])
job = json.loads((folder / "graph.json").read_text())
torch.set_num_threads(1)


def load(name, shape):
    return torch.from_numpy(numpy.fromfile(folder / name, numpy.float32).reshape(shape).copy())


state = {t["name"]: load("state." + t["name"], t["shape"]) for t in job["tensors"]}
parameters = [t["name"] for t in job["tensors"] if t["role"] == "parameter"]
for name in parameters:
    state[name].requires_grad_()


def run(node, inputs, training):
    kind, name, x = node["kind"], node["name"], inputs[0] if inputs else None
    if kind == "input":
        return load("images", [job["batch"]] + node["shape"])
    if kind == "convolution":
        return F.conv2d(x, state[name + ".weight"], state.get(name + ".bias"), node["stride"],
                        (node["padding"], node["padding_width"]), groups=node["groups"])
    if kind == "fully connected":
        return F.linear(x.flatten(1), state[name + ".weight"], state[name + ".bias"])
    if kind == "max pool":
        return F.max_pool2d(x, node["window"], node["stride"], node["padding"], ceil_mode=node["keeps_edge"])
    if kind == "window average pool":
        return F.avg_pool2d(x, node["window"], node["stride"], node["padding"], node["keeps_edge"], node["counts_padding"])
    if kind == "local response norm":
        return F.local_response_norm(x, node["size"], node["alpha"], node["beta"], node["bias"])
    if kind == "concat":
        return torch.cat(inputs, 1)
    if kind == "average pool":
        return F.adaptive_avg_pool2d(x, 1)
    if kind == "batch norm":
        return F.batch_norm(x, state[name + ".running_mean"], state[name + ".running_var"], state[name + ".weight"],
                            state[name + ".bias"], training, node["momentum"], node["epsilon"])
    if kind == "relu":
        return F.relu(x)
    if kind == "dropout":
        return x * load(f"mask.{node['number']}", x.shape) if training else x
    if kind == "add":
        return inputs[0] + inputs[1]
    if kind == "flatten":
        return x.flatten(1)
    raise SystemExit(f"unknown operator {kind}")


def scores(training):
    """Of every head: [(weight, scores)], the main one last."""
    values, heads = [], []
    for node in job["nodes"]:
        inputs = [values[i] for i in node["inputs"]]
        values.append(None if node["kind"] == "loss" else run(node, inputs, training))
        if node["kind"] == "loss":
            heads.append((node["weight"], inputs[0]))
    return heads


labels = torch.from_numpy(numpy.fromfile(folder / "labels", numpy.int32).astype("int64"))
statistics = {name: state[name].clone() for name in state if name not in parameters}


def everything():
    """All figures of one evaluation and one training step, by name."""
    for name in statistics:
        state[name] = statistics[name].clone()
    def losses(training):
        return [(weight, F.cross_entropy(of.float(), labels, ignore_index=-1, reduction="sum"))
                for weight, of in scores(training)]

    found = {"evaluation loss": losses(False)[-1][1].detach()}
    heads = losses(True)
    found["training loss"] = heads[-1][1].detach()
    total = sum(weight * loss for weight, loss in heads)
    slopes = torch.autograd.grad(total / job["batch"], [state[name] for name in parameters])
    found.update(("gradient." + name, slope) for name, slope in zip(parameters, slopes))
    found.update(("after." + name, state[name]) for name in statistics)
    return found


def distance(left, right):
    left, right = left.double().flatten(), right.double().flatten()
    return ((left - right).norm() / max(right.norm().item(), 1e-3 * right.numel() ** 0.5)).item()


exact = everything()
rounded = {}
if job["precision"] == "bf16":
    with torch.autocast("cpu", torch.bfloat16):
        rounded = everything()
wrong = 0
for name, theirs in exact.items():
    ours = torch.tensor(job[name]) if name in job else load(name, theirs.shape)
    allowed = tolerance + (1.5 * distance(rounded[name], theirs) if rounded else 0)
    error = distance(ours, theirs)
    if not error <= allowed:
        wrong += 1
        print(f"{name}: relative difference {error:.3g} is above {allowed:.3g}")
sys.exit(1 if wrong else 0)
