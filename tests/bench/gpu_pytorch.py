#!/usr/bin/python3
"""gpu_pytorch.py MODEL eager|compile BATCH STEPS: images a second of PyTorch training a torchvision model on one GPU, at its
usual best: bf16 autocast, channels_last, cuDNN's own choice by timing, synthetic images that stay on the GPU. Under torchrun a
rank a GPU with DistributedDataParallel, and the images a second of all. Prints one line of JSON. Needs a PyTorch with CUDA, and
torchvision; the peer of tests/bench/gpu_resnet50 and gpu_ranks.

gpu_pytorch.py sum: under torchrun, the sum of floats over the ranks by NCCL, a line of JSON a size."""
import json
import os
import statistics
import sys

import torch
import torch.distributed as dist

RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def say(**facts):
    if RANK == 0:
        print(json.dumps(facts), flush=True)


def seconds_of(body, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if RANKS > 1:
        dist.barrier()
    begin.record()
    for _ in range(times):
        body()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000


def train(model_name, mode, batch, steps):
    import torchvision
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model = getattr(torchvision.models, model_name)(num_classes=1000).cuda().to(memory_format=torch.channels_last)
    if RANKS > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[RANK], gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    side = 299 if model_name == "inception_v3" else 224
    images = torch.randn(batch, 3, side, side, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    run = torch.compile(model) if mode == "compile" else model

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            scores = run(images)
            if isinstance(scores, tuple):  # Inception v3 with its auxiliary head
                loss = loss_of(scores[0], labels) + 0.4 * loss_of(scores[1], labels)
            else:
                loss = loss_of(scores, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    for _ in range(12):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    rates = [batch * RANKS * (steps // 5) / seconds_of(step, steps // 5) for _ in range(5)]
    say(images_per_second=statistics.median(rates), memory_bytes=torch.cuda.max_memory_allocated(), model=model_name, mode=mode,
        batch=batch, ranks=RANKS, torch=torch.__version__, device=torch.cuda.get_device_name())


def sums():
    size = 64 << 10
    while size <= 1 << 30:
        data = torch.ones(size // 4, device="cuda")
        for _ in range(5):
            dist.all_reduce(data)
        data.fill_(1)
        times = 20
        best = min(seconds_of(lambda: dist.all_reduce(data), times) / times for _ in range(3))
        say(bytes=size, issued_us=best * 1e6, issued_gb_per_second=size * 2 * (RANKS - 1) / RANKS / best / 1e9)
        size *= 4


torch.cuda.set_device(RANK)
if RANKS > 1:
    dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
if sys.argv[1] == "sum":
    sums()
else:
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
if RANKS > 1:
    dist.destroy_process_group()
