#!/usr/bin/python3
"""gpu_pytorch.py MODEL eager|compile BATCH STEPS: images a second of PyTorch training a torchvision model on one GPU, at its
usual best: bf16 autocast, channels_last, cuDNN's own choice by timing, synthetic images that stay on the GPU. Prints one line
of JSON. Needs a PyTorch with CUDA, and torchvision; the peer of tests/bench/gpu_resnet50."""
import json
import statistics
import sys

import torch
import torchvision

model_name, mode, batch, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.backends.cudnn.benchmark = True
torch.manual_seed(1)
model = getattr(torchvision.models, model_name)(num_classes=1000).cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()
side = 299 if model_name == "inception_v3" else 224
images = torch.randn(batch, 3, side, side, device="cuda").to(memory_format=torch.channels_last)
labels = torch.randint(0, 1000, (batch,), device="cuda")
run = torch.compile(model) if mode == "compile" else model


def step():
    with torch.autocast("cuda", torch.bfloat16):
        loss = loss_of(run(images), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


for _ in range(12):
    step()
torch.cuda.synchronize()
torch.cuda.reset_peak_memory_stats()
rates = []
for _ in range(5):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(steps // 5):
        step()
    end.record()
    torch.cuda.synchronize()
    rates.append(batch * (steps // 5) / begin.elapsed_time(end) * 1000)
print(json.dumps({"images_per_second": statistics.median(rates), "memory_bytes": torch.cuda.max_memory_allocated(),
                  "torch": torch.__version__, "device": torch.cuda.get_device_name(0)}))
