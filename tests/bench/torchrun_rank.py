#!/usr/bin/python3
"""torchrun_rank.py FOLDER: one rank of a training that torchrun restarts: PyTorch DDP over gloo, the model and the batch of
lost_ranks, a checkpoint every 50 steps, from the newest of which it begins. Rank 0 appends a line to FOLDER/steps as each step is
complete: its time and number, and the time at which the rank was started. It trains until it is ended."""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

import pytorch_rank

BATCH, SAMPLES, CHECKPOINT_STEPS = 16, 1280, 50


def save(path, step, model, optimizer):
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{path}.new")
    os.replace(f"{path}.new", path)


def main(folder):
    began = time.time()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    torch.set_num_threads(1)
    images, labels = torch.rand(SAMPLES, 1, 28, 28), torch.randint(10, (SAMPLES,))
    model = torch.nn.parallel.DistributedDataParallel(pytorch_rank.network(), gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    path, step = folder / "checkpoint", 0
    if path.exists():
        state = torch.load(path)
        step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    while True:
        first = (step * world + rank) * BATCH % SAMPLES
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(images[first:first + BATCH]), labels[first:first + BATCH]).backward()
        optimizer.step()
        step += 1
        if rank == 0:
            with open(folder / "steps", "a", encoding="utf-8") as file:
                file.write(f"{time.time()} {step} {began}\n")
            if step % CHECKPOINT_STEPS == 0:
                save(path, step, model, optimizer)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
