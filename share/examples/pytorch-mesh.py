#!/usr/bin/env python3
"""Tensor and data parallelism in plain PyTorch, with the process groups that dlrun planned:

    dlrun --framework pytorch --tasks-per-node 4 --tensor-parallel 2 -- python3 pytorch-mesh.py

The first layer is split by columns and the second by rows over the tensor group, as in Megatron-LM; gradients are averaged
over the data group. The loss is the same as that of the model on one rank."""
import os
import sys

import torch
import torch.distributed as dist


def process_groups(device):
    """{kind: group} of this rank: from torch's DeviceMesh of the planned shape, or by hand if torch is too old to have one."""
    names = os.environ["DLRUN_MESH_NAMES"].split(",")
    shape = [int(size) for size in os.environ["DLRUN_MESH_SHAPE"].split(",")]
    try:
        from torch.distributed.device_mesh import init_device_mesh
    except ImportError:
        found, ranks = {}, torch.arange(dist.get_world_size()).view(shape)
        for dimension, name in enumerate(names):
            for members in ranks.swapdims(-1, dimension).reshape(-1, shape[dimension]).tolist():
                group = dist.new_group(members)  # all ranks create all groups
                if dist.get_rank() in members:
                    found[name] = group
        return found
    mesh = init_device_mesh(device, tuple(shape), mesh_dim_names=tuple(names))
    return {name: mesh.get_group(name) for name in names}


def members(group, device):
    """The ranks of a group, collected by an allgather."""
    told = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(dist.get_world_size(group))]
    dist.all_gather(told, torch.tensor([dist.get_rank()], device=device), group=group)
    return [int(one) for one in told]


def train(groups, device, steps=50, hidden=64):
    """The loss of all samples before the last step."""
    part, parts = dist.get_rank(groups["tensor"]), dist.get_world_size(groups["tensor"])
    copy, copies = dist.get_rank(groups["data"]), dist.get_world_size(groups["data"])
    torch.manual_seed(1)  # all ranks draw the whole model and all samples, and keep their parts
    first, second = torch.randn(hidden, 16) / 4, torch.randn(1, hidden) / 8
    samples = torch.randn(256, 16)
    targets = samples[:, :4].prod(1, keepdim=True)
    first = first.chunk(parts)[part].to(device).requires_grad_()
    second = second.chunk(parts, 1)[part].contiguous().to(device).requires_grad_()
    samples, targets = (one.chunk(copies)[copy].to(device) for one in (samples, targets))
    for _ in range(steps):
        own = torch.relu(samples @ first.T) @ second.T
        whole = own.detach().clone()
        dist.all_reduce(whole, group=groups["tensor"])
        output = own + (whole - own.detach())  # the sum of all parts; its gradient is that of the own part
        loss = (output - targets).square().mean()
        loss.backward()
        told = loss.detach() / copies
        dist.all_reduce(told, group=groups["data"])
        with torch.no_grad():
            for weight in (first, second):
                dist.all_reduce(weight.grad, group=groups["data"])
                weight -= 0.05 / copies * weight.grad
                weight.grad = None
    return float(told)


def say(line):
    """In one piece: under torchrun several workers write to one pipe, without buffers, and print() writes its parts one by one."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main():
    for kind in ("PIPELINE", "CONTEXT"):
        if os.environ.get(f"DLRUN_{kind}_SIZE") != "1":
            sys.exit(f"DLRUN_{kind}_SIZE must be 1 here, not {os.environ.get(f'DLRUN_{kind}_SIZE', 'unset: use --tensor-parallel')}")
    torch.set_num_threads(1)
    gpu = torch.cuda.is_available()
    device = f"cuda:{os.environ['LOCAL_RANK']}" if gpu else "cpu"
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    groups = process_groups("cuda" if gpu else "cpu")
    say(f"rank {dist.get_rank()}: " + " ".join(f"{name} {members(group, device)}" for name, group in groups.items()))
    say(f"rank {dist.get_rank()} ends with loss {train(groups, device):.6f}")
    dist.barrier()  # gloo may wait for ever for a rank that is gone
    dist.destroy_process_group()


main()
