#!/usr/bin/env python3
"""A PyTorch training that fits any walltime: it reports its progress, saves on request, exits with 75, and resumes from
there when it is run again.

    dlrun --framework pytorch --tasks-per-node 2 --walltime 30s -- python3 pytorch-walltime.py --steps 2000

dlrun_client.py is in share/python of the sources and in share/dlrun/python where dlrun is installed."""
import argparse
import os
import pathlib
import sys

import torch
import torch.distributed as dist

# Of the sources, or of an installation with this file in share/doc/dlrun/examples.
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.environ["DLRUN_PYTHON"]] if "DLRUN_PYTHON" in os.environ else [str(HERE / "../python"), str(HERE / "../../../dlrun/python")]
import dlrun_client  # pylint: disable=wrong-import-position


def any_rank(asked):
    """Whether any rank was asked: all ranks save and stop at the same step."""
    flag = torch.tensor([float(asked)])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def save(path, state):
    """Writes another file and renames it: a kill in the middle leaves the previous checkpoint."""
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    first = 0
    if os.path.exists(options.checkpoint):
        state = torch.load(options.checkpoint)
        first = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        if dist.get_rank() == 0:
            print(f"resuming from step {first}", flush=True)
    with dlrun_client.connect() as dlrun:
        for step in range(first, options.steps):
            data = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
            x = torch.randn(32, 64, generator=data)
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            dlrun.report(step=step + 1, steps=options.steps, loss=loss.item())
            if dlrun.checkpoint_requested(agree=any_rank):
                if dist.get_rank() == 0:
                    with dlrun.saving(step + 1):
                        save(options.checkpoint, {"step": step + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()})
                dist.barrier()  # nobody leaves before it is saved
                dlrun.stop_if_requested()
        if dist.get_rank() == 0:
            dlrun.result(loss=loss.item(), weights=sum(p.double().sum().item() for p in model.parameters()))


if __name__ == "__main__":
    main()
