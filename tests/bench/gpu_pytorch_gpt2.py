#!/usr/bin/env python3
"""gpu_pytorch_gpt2.py eager|compile BATCH STEPS: GPT-2 124M in PyTorch on one GPU, 1,024 tokens a row out of 50,304: bf16 autocast,
fused attention, fused AdamW, clipping, tokens that are on the GPU already. Prints a line of JSON."""
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, LAYERS, HEADS, LENGTH, VOCABULARY = 768, 12, 12, 1024, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(FEATURES), nn.LayerNorm(FEATURES)
        self.qkv, self.out = nn.Linear(FEATURES, 3 * FEATURES), nn.Linear(FEATURES, FEATURES)
        self.up, self.down = nn.Linear(FEATURES, 4 * FEATURES), nn.Linear(4 * FEATURES, FEATURES)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).split(FEATURES, 2)
        q, k, v = (part.view(len(x), LENGTH, HEADS, -1).transpose(1, 2) for part in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, FEATURES), nn.Embedding(LENGTH, FEATURES)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(FEATURES), nn.Linear(FEATURES, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, labels):
        x = self.tokens(tokens) + self.positions(torch.arange(LENGTH, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).view(-1, VOCABULARY), labels.view(-1))


def main():
    mode, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_float32_matmul_precision("high")
    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    run = torch.compile(model) if mode == "compile" else model
    tokens, labels = (torch.randint(VOCABULARY, (batch, LENGTH), device="cuda") for _ in range(2))

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(tokens, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(8):
        step()
    rounds = []
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.monotonic()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        rounds.append(time.monotonic() - start)
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(),
                      "tokens_per_second": batch * LENGTH * steps / sorted(rounds)[1],
                      "memory_bytes": torch.cuda.max_memory_allocated()}))


main()
