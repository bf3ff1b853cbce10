#!/usr/bin/python3
"""parallel_groups.py FRAMEWORK [WORDS]: makes the process groups that FRAMEWORK would make of its arguments and of RANK and
WORLD_SIZE, and compares this rank's places in them with DLRUN_TENSOR_RANK and the like. It prints the places."""
import argparse
import os
import sys

AXES = ("tp", "cp", "dp", "pp", "ep", "expert-dp")
NAMES = dict(zip(AXES, ("TENSOR", "CONTEXT", "DATA", "PIPELINE", "EXPERT", "EXPERT_DATA")))
WORLD, RANK = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])


def places(order, sizes):
    """{axis: place} of this rank on a grid whose first axis is the fastest."""
    found, rest = {}, RANK
    for axis in order:
        found[axis] = rest % sizes[axis]
        rest //= sizes[axis]
    assert rest == 0, f"rank {RANK} is not on the grid {sizes}"
    return found


def megatron(order, tp, pp, cp, ep):
    """Two grids (RankGenerator): without experts, and without context. Both must have the same pipeline."""
    dense = places([axis for axis in order if axis != "ep"], {"tp": tp, "cp": cp, "dp": WORLD // (tp * cp * pp), "pp": pp})
    experts = places([axis for axis in order if axis != "cp"], {"tp": tp, "ep": ep, "dp": WORLD // (tp * ep * pp), "pp": pp})
    assert (dense["pp"], dense["tp"]) == (experts["pp"], experts["tp"]), (dense, experts)
    return {**dense, "ep": experts["ep"], "expert-dp": experts["dp"]}


def arguments(words, *names):
    parser = argparse.ArgumentParser(allow_abbrev=False)  # what it does not know is an error
    for name in names:
        parser.add_argument(name, type=int, default=1)
    parser.add_argument("--use-tp-pp-dp-mapping", action="store_true")
    return parser.parse_args(words)


def by_megatron_lm(words):
    of = arguments(words, "--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size", "--expert-model-parallel-size")
    order = ("tp", "cp", "ep", "pp", "dp") if of.use_tp_pp_dp_mapping else ("tp", "cp", "ep", "dp", "pp")
    return megatron(order, of.tensor_model_parallel_size, of.pipeline_model_parallel_size, of.context_parallel_size, of.expert_model_parallel_size)


def by_megatron_deepspeed(words):
    """PipeModelDataParallelTopology: pipe, data, model, the last fastest; experts over neighbours in the data group."""
    of = arguments(words, "--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--moe-expert-parallel-size")
    tp, pp, ep = of.tensor_model_parallel_size, of.pipeline_model_parallel_size, of.moe_expert_parallel_size
    grid = places(("tp", "dp", "pp"), {"tp": tp, "dp": WORLD // (tp * pp), "pp": pp})
    return {**grid, "cp": 0, "ep": grid["dp"] % ep, "expert-dp": grid["dp"] // ep}


def by_torchtitan(words):
    """A mesh of pp, dp, cp, tp, the last fastest; experts over dp x cp where their tensor degree is the model's."""
    of = arguments(words, *(f"--parallelism.{name}_parallel_degree" for name in ("tensor", "pipeline", "context", "expert", "expert_tensor")))
    degree = {name.partition(".")[2].replace("_parallel_degree", ""): value for name, value in vars(of).items() if "." in name}
    tp, pp, cp, ep = degree["tensor"], degree["pipeline"], degree["context"], degree["expert"]
    assert ep == 1 or degree["expert_tensor"] == tp, "experts would be divided over the tensor groups"
    grid = places(("tp", "cp", "dp", "pp"), {"tp": tp, "cp": cp, "dp": WORLD // (tp * cp * pp), "pp": pp})
    copy = grid["cp"] + cp * grid["dp"]
    return {**grid, "ep": copy % ep, "expert-dp": copy // ep}


def by_overrides(words, prefix, mapping):
    """KEY=VALUE as Hydra and NeMo-Run take them."""
    told = dict(word.split("=", 1) for word in words)
    if "trainer.num_nodes" in told:
        assert int(told["trainer.num_nodes"]) * int(told["trainer.devices"]) == WORLD, told
    sizes = [int(told[prefix + name]) if prefix + name in told else 1 for name in (
        "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "expert_model_parallel_size")]
    return megatron(("tp", "cp", "ep", "pp", "dp") if told.get(mapping) == "true" else ("tp", "cp", "ep", "dp", "pp"), *sizes)


FRAMEWORKS = {"megatron-lm": by_megatron_lm, "megatron-deepspeed": by_megatron_deepspeed, "torchtitan": by_torchtitan,
              "nemo": lambda words: by_overrides(words, "trainer.strategy.", "trainer.strategy.use_tp_pp_dp_mapping"),
              "megatron-bridge": lambda words: by_overrides(words, "model.", "dist.use_tp_pp_dp_mapping")}


def main():
    found = FRAMEWORKS[sys.argv[1]](sys.argv[2:])
    told = {axis: int(os.environ[f"DLRUN_{name}_RANK"]) for axis, name in NAMES.items()}
    if found != told:
        sys.exit(f"rank {RANK}: the framework's places are {found}, and dlrun's {told}")
    print(f"rank {RANK}: " + " ".join(f"{axis} {found[axis]}" for axis in AXES))


main()
