#!/usr/bin/python3
"""One rank of the peer of tests/bench/resnets: PyTorch, DDP over gloo where there are more, training a ResNet on synthetic
images that lie in memory, f32 or bf16 autocast. Arguments: MODEL (resnet18-cifar or resnet50), BATCH, STEPS, PRECISION.
Rank 0 prints one JSON object. The models are dlrun's, layer by layer; torchvision is not needed."""
import contextlib
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WARM_UP = 2
LAYOUT = torch.channels_last


def convolution(inputs, outputs, kernel, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        relu = nn.ReLU(inplace=True)
        if bottleneck:
            self.body = nn.Sequential(convolution(inputs, width, 1), relu, convolution(width, width, 3, stride), relu,
                                      convolution(width, outputs, 1))
        else:
            self.body = nn.Sequential(convolution(inputs, width, 3, stride), relu, convolution(width, width, 3))
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else convolution(inputs, outputs, 1, stride)

    def forward(self, rows):
        return torch.relu_(self.body(rows) + self.shortcut(rows))


def resnet(stem, blocks, bottleneck, classes):
    layers, inputs = [*stem], 64
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Block(inputs, 64 << stage, 2 if stage > 0 and block == 0 else 1, bottleneck))
            inputs = (64 << stage) * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


MODELS = {
    "resnet18-cifar": (32, 10, lambda: resnet([convolution(3, 64, 3), nn.ReLU(True)], (2, 2, 2, 2), False, 10)),
    "resnet50": (224, 1000, lambda: resnet([convolution(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)],
                                           (3, 4, 6, 3), True, 1000)),
}


def main(name, batch, steps, precision):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    side, classes, build = MODELS[name]
    torch.manual_seed(1)
    network = build().to(memory_format=LAYOUT)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    if world > 1:
        dist.init_process_group("gloo")
        network = nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, side, side).contiguous(memory_format=LAYOUT)
    labels = torch.randint(0, classes, (batch,))
    autocast = torch.cpu.amp.autocast if precision == "bf16" else contextlib.nullcontext
    times = []
    for _ in range(WARM_UP + steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            loss = loss_of(network(images), labels)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        print(json.dumps({"images_per_second": world * batch / statistics.median(times[WARM_UP:]), "parameters": parameters}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
