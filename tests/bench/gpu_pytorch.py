#!/usr/bin/python3
"""gpu_pytorch.py MODEL eager|compile BATCH STEPS [cpu]: images a second of PyTorch training a torchvision model, or cosmoflow, on
one GPU, at its usual best: bf16 autocast, channels_last, cuDNN's own choice by timing, synthetic images that stay on the GPU. As ranks
(RANK, WORLD_SIZE: torchrun, or another starter) a rank per GPU with DistributedDataParallel, and the images a second of all.
Prints a line of JSON when the first step is done, and one at the end. Needs a PyTorch with CUDA, and torchvision; the peer of
tests/bench/gpu_resnet50, gpu_cosmoflow, gpu_ranks and gpu_scaling. With cpu the small network of pytorch_rank.py on processors over gloo, to
try these benchmarks where there is no GPU.

gpu_pytorch.py sum [captured]: as ranks, the sum of floats over the ranks by NCCL, a line of JSON a size; with captured, too,
when twenty of them are one CUDA graph."""
import contextlib
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
ON_GPU = sys.argv[-1] != "cpu"
DEVICE = torch.device("cuda", RANK) if ON_GPU else torch.device("cpu")
TIMES = 20  # sums that are timed together


def say(**facts):
    if RANK == 0:
        print(json.dumps(facts), flush=True)


def wait():
    if ON_GPU:
        torch.cuda.synchronize()


def seconds_of(body, times):
    if RANKS > 1:
        dist.barrier()
    if not ON_GPU:
        began = time.perf_counter()
        for _ in range(times):
            body()
        return time.perf_counter() - began
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        body()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000


def cosmoflow():
    """As runtime/models/cosmoflow.cpp has it."""
    layers, channels = [], 4
    for filters in (32, 64, 128, 256, 512):
        layers += [torch.nn.Conv3d(channels, filters, 3, padding=1), torch.nn.LeakyReLU(0.3), torch.nn.MaxPool3d(2)]
        channels = filters
    layers.append(torch.nn.Flatten())
    for inputs, outputs in ((512 * 4 ** 3, 128), (128, 64)):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.LeakyReLU(0.3), torch.nn.Dropout(0.5)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 4))


def network(name):
    """The network and the shape of its images."""
    if name == "cosmoflow":
        return cosmoflow(), (4, 128, 128, 128)
    if not ON_GPU:
        import pytorch_rank
        return pytorch_rank.network(), (1, 28, 28)
    import torchvision
    side = 299 if name == "inception_v3" else 224
    return getattr(torchvision.models, name)(num_classes=1000), (3, side, side)


def train(model_name, mode, batch, steps):
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model, shape = network(model_name)
    volumes = len(shape) == 4
    channels_last = torch.channels_last_3d if volumes else torch.channels_last
    model = model.to(DEVICE).to(memory_format=channels_last)
    if RANKS > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[RANK] if ON_GPU else None,
                                                          gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.MSELoss() if volumes else torch.nn.CrossEntropyLoss()
    images = torch.randn(batch, *shape, device=DEVICE).to(memory_format=channels_last)
    labels = torch.rand(batch, 4, device=DEVICE) if volumes else torch.randint(0, 1000 if ON_GPU else 10, (batch,), device=DEVICE)
    run = torch.compile(model) if mode == "compile" else model

    def step():
        with torch.autocast("cuda", torch.bfloat16) if ON_GPU else contextlib.nullcontext():
            scores = run(images)
            if isinstance(scores, tuple):  # Inception v3 with its auxiliary head
                loss = loss_of(scores[0], labels) + 0.4 * loss_of(scores[1], labels)
            else:
                loss = loss_of(scores, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    step()
    wait()
    say(first_step_at=time.time())
    for _ in range(11):
        step()
    wait()
    if ON_GPU:
        torch.cuda.reset_peak_memory_stats()
    rates = [batch * RANKS * (steps // 5) / seconds_of(step, steps // 5) for _ in range(5)]
    say(images_per_second=statistics.median(rates), memory_bytes=torch.cuda.max_memory_allocated() if ON_GPU else 0,
        model=model_name, mode=mode, batch=batch, ranks=RANKS, torch=torch.__version__,
        device=torch.cuda.get_device_name() if ON_GPU else "processors")


def captured(data):
    """Seconds of one sum of many in a CUDA graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(TIMES):
            dist.all_reduce(data)
    graph.replay()
    torch.cuda.synchronize()
    return min(seconds_of(graph.replay, 1) / TIMES for _ in range(3))


def sums(in_graph):
    size = 64 << 10
    while size <= 1 << 30:
        data = torch.ones(size // 4, device="cuda")
        for _ in range(5):
            dist.all_reduce(data)
        data.fill_(1)
        times = {"issued": min(seconds_of(lambda: dist.all_reduce(data), TIMES) / TIMES for _ in range(3))}
        if in_graph:
            data.fill_(0)
            times["captured"] = captured(data)
        moved = size * 2 * (RANKS - 1) / RANKS / 1e9
        say(bytes=size, **{f"{how}_us": taken * 1e6 for how, taken in times.items()},
            **{f"{how}_gb_per_second": moved / taken for how, taken in times.items()})
        size *= 4


if ON_GPU:
    torch.cuda.set_device(RANK)
if RANKS > 1:
    dist.init_process_group("nccl", device_id=DEVICE) if ON_GPU else dist.init_process_group("gloo")
if sys.argv[1] == "sum":
    sums(sys.argv[-1] == "captured")
else:
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
if RANKS > 1:
    dist.destroy_process_group()
