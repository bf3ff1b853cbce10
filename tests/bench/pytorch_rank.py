#!/usr/bin/python3
"""One rank of the peer: PyTorch DDP over gloo training the MNIST CNN on Fashion-MNIST. Started by pytorch.py; the same
model, batch, optimizer and data as share/examples/fashion-mnist.yaml. Rank 0 prints one JSON object when it is done.

The timed steps hold what a user's loop holds: the next batch assembled from the bytes in memory, forward, backward with
the allreduce, the update. Peak memory is read from VmHWM, which unlike ru_maxrss is not inherited from the starter.
"""
import gzip
import json
import os
import pathlib
import sys
import time

import numpy
import torch
import torch.distributed as dist

BATCH = 64
LAYOUT = torch.channels_last


def read(folder, name):
    with gzip.open(pathlib.Path(folder, f"{name}-images-idx3-ubyte.gz")) as file:
        images = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(pathlib.Path(folder, f"{name}-labels-idx1-ubyte.gz")) as file:
        labels = numpy.frombuffer(file.read(), numpy.uint8, offset=8)
    return torch.from_numpy(images.copy()), torch.from_numpy(labels.astype(numpy.int64))


def network():
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 1024), nn.ReLU(), nn.Dropout(0.5), nn.Linear(1024, 10))


def peak_memory():
    """MiB of this process at its largest."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


def train(model, images, labels, rank, world, steps):
    """The time at which each step ended."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    loss_of = torch.nn.CrossEntropyLoss()
    order = torch.Generator().manual_seed(1)
    ends = []
    while len(ends) < steps:
        mine = torch.randperm(len(images), generator=order)[rank::world]
        for index in mine.split(BATCH)[:len(mine) // BATCH][:steps - len(ends)]:
            optimizer.zero_grad(set_to_none=True)
            batch = images[index].float().div_(255).contiguous(memory_format=LAYOUT)
            loss_of(model(batch), labels[index]).backward()
            optimizer.step()
            ends.append(time.time())
    return ends


def main(folder, steps):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    images, labels = read(folder, "train")
    model = network().to(memory_format=LAYOUT)
    if world > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
    ends = train(model, images, labels, rank, world, steps)
    peak = torch.tensor([peak_memory()])
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(json.dumps({"ends": ends, "peak_mib": peak.item(), "images_per_step": BATCH * world}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
