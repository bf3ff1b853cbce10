#!/usr/bin/python3
"""The peer of tests/bench/transformer: PyTorch training a GPT on one batch of random tokens that lies in memory, f32.
Arguments: LAYERS, HEADS, FEATURES, POSITIONS, VOCABULARY, BATCH, STEPS. Prints one JSON object: tokens per second by the
median step, of wall time and of processor time. The model is dlrun's, layer by layer."""
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WARM_UP = 2


class Block(nn.Module):
    def __init__(self, heads, features, positions):
        super().__init__()
        self.heads = heads
        self.first_norm, self.second_norm = nn.LayerNorm(features), nn.LayerNorm(features)
        self.attention_in, self.attention_out = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.up, self.down = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)
        mask = torch.ones(positions, positions, dtype=torch.bool).triu(1)
        self.register_buffer("later", mask)

    def attention(self, x):
        query, key, value = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                             for part in self.attention_in(x).chunk(3, -1))
        if hasattr(F, "scaled_dot_product_attention"):
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(2, 3) * (1 / math.sqrt(query.shape[-1]))
            mixed = scores.masked_fill(self.later, float("-inf")).softmax(-1) @ value
        return self.attention_out(mixed.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.first_norm(x))
        return x + self.down(F.gelu(self.up(self.second_norm(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, heads, features, positions, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, features), nn.Embedding(positions, features)
        self.blocks = nn.Sequential(*(Block(heads, features, positions) for _ in range(layers)))
        self.norm = nn.LayerNorm(features)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def main(layers, heads, features, positions, vocabulary, batch, steps):
    torch.manual_seed(1)
    network = Gpt(layers, heads, features, positions, vocabulary)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    tokens = torch.randint(0, vocabulary, (batch, positions))
    labels = torch.randint(0, vocabulary, (batch * positions,))
    times, busy = [], []
    for _ in range(WARM_UP + steps):
        begin, busy_begin = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(network(tokens).flatten(0, 1), labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        busy.append(time.process_time() - busy_begin)
    print(json.dumps({"tokens_per_second": batch * positions / statistics.median(times[WARM_UP:]),
                      "tokens_per_processor_second": batch * positions / statistics.median(busy[WARM_UP:]),
                      "parameters": sum(parameter.numel() for parameter in network.parameters())}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
