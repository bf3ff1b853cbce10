#!/usr/bin/python3
"""ddp.py STATE --more N [--every K]: PyTorch DistributedDataParallel over gloo on a part of Fashion-MNIST. It resumes from the
checkpoint STATE and trains N more steps; every rank prints a checksum of its weights, so that a test can compare them."""
import argparse
import gzip
import hashlib
import os

import numpy
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

DATA = "/usr/share/datasets/fashion-mnist/train-"


def read(name, header, count):
    for path, opener in ((DATA + name, open), (DATA + name + ".gz", gzip.open)):
        if os.path.exists(path):
            with opener(path, "rb") as file:
                return numpy.frombuffer(file.read(header + count)[header:], dtype=numpy.uint8)
    raise FileNotFoundError(DATA + name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("state")
    parser.add_argument("--more", type=int, required=True)
    parser.add_argument("--every", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    samples = 2048
    images = torch.from_numpy(read("images-idx3-ubyte", 16, samples * 784).copy()).float().view(samples, 784) / 255
    labels = torch.from_numpy(read("labels-idx1-ubyte", 8, samples).copy()).long()
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    path, first = options.state, 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    torch.distributed.barrier()  # nobody saves before everybody has read
    for step in range(first, first + options.more):
        begin = (step * size + rank) * 32 % samples
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[begin:begin + 32]), labels[begin:begin + 32])
        loss.backward()
        optimizer.step()
        if step == first:
            print(f"began at step {first} of {size} ranks, loss {loss.item():.3f}", flush=True)
        if (step + 1) % options.every == 0 and rank == 0:
            torch.save({"step": step + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
            os.replace(path + ".new", path)
    total = loss.detach().clone()
    torch.distributed.all_reduce(total)
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]
    print(f"ended with loss {total.item() / size:.3f}, parameters {digest}", flush=True)
    # Without this PyTorch 1.13's gloo threads are now and then ended by the interpreter, which aborts the process.
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
