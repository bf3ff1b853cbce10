"""The logits of transformers' GPT2LMHeadModel and LlamaForCausalLM, written out by hand for pytorch_oracle.py: a file
model.safetensors with Hugging Face's names, tokens in, and what the engine says the scores are."""
import json
import struct
import sys

import numpy
import torch
import torch.nn.functional as F


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            assert entry["format"] == "pt"
            continue
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values = numpy.frombuffer(data[begin:end], numpy.float32).reshape(entry["shape"])
        out[name] = torch.from_numpy(values.copy()).double()
    return out


def causal(query, key, value):
    scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(-1) @ value


def heads_of(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


def gpt2(w, tokens, heads, layers):
    """Conv1D's weights are [inputs, outputs]."""
    def conv1d(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-5)

    x = w["wte.weight"][tokens] + w["wpe.weight"][:tokens.shape[1]]
    for i in range(layers):
        parts = conv1d(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, -1)
        x = x + conv1d(joined(causal(*(heads_of(part, heads) for part in parts))), f"h.{i}.attn.c_proj")
        inner = F.gelu(conv1d(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + conv1d(inner, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def rotated(x):
    width = x.shape[-1]
    frequencies = 1 / 10000 ** (torch.arange(0, width, 2).double() / width)
    angles = torch.outer(torch.arange(x.shape[2]).double(), frequencies)
    angles = torch.cat((angles, angles), -1)
    half = torch.cat((-x[..., width // 2:], x[..., :width // 2]), -1)
    return x * angles.cos() + half * angles.sin()


def llama(w, tokens, heads, layers):
    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w[name + ".weight"]

    width = w["model.embed_tokens.weight"].shape[1] // heads
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(layers):
        def linear(value, name):
            return value @ w[f"model.layers.{i}.{name}.weight"].T
        y = norm(x, f"model.layers.{i}.input_layernorm")
        query, key, value = (linear(y, f"self_attn.{part}_proj") for part in "qkv")
        key_heads = key.shape[-1] // width
        query, key, value = heads_of(query, heads), heads_of(key, key_heads), heads_of(value, key_heads)
        key, value = (part.repeat_interleave(heads // key_heads, 1) for part in (rotated(key), value))
        x = x + linear(joined(causal(rotated(query), key, value)), "self_attn.o_proj")
        y = norm(x, f"model.layers.{i}.post_attention_layernorm")
        x = x + linear(F.silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj"), "mlp.down_proj")
    return norm(x, "model.norm") @ w["lm_head.weight"].T


def agrees(folder, tolerance):
    job = json.loads((folder / "gpt2.json").read_text())
    weights = read_safetensors(folder / "model.safetensors")
    tokens = torch.from_numpy(numpy.fromfile(folder / "tokens", numpy.int32).astype("int64")).reshape(job["batch"], -1)
    exact = {"gpt2": gpt2, "llama": llama}[job["form"]](weights, tokens, job["heads"], job["layers"])
    ours = torch.from_numpy(numpy.fromfile(folder / "scores", numpy.float32)).double().reshape(exact.shape)
    error = ((ours - exact).norm() / exact.norm()).item()
    if not error <= tolerance:
        print(f"scores: relative difference {error:.3g} is above {tolerance:.3g}", file=sys.stderr)
    return error <= tolerance
