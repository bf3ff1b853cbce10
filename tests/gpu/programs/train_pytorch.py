"""DistributedDataParallel over NCCL as PyTorch's own examples have it: the device is LOCAL_RANK."""
import os

import progress
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
rank = dist.get_rank()
progress.say_who(rank, local)
model = torch.nn.Linear(8, 1).cuda()
counted = torch.zeros(1, device="cuda")  # sums one of each rank a step
step = 0
if os.path.exists("checkpoint.pt"):
    state = torch.load("checkpoint.pt", map_location=f"cuda:{local}")
    step, counted = state["step"], state["counted"]
    model.load_state_dict(state["model"])
began = step
model = DistributedDataParallel(model, device_ids=[local])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while step < progress.STEPS:
    optimizer.zero_grad()
    model(torch.randn(16, 8, device="cuda")).square().mean().backward()
    optimizer.step()
    one = torch.ones(1, device="cuda")
    dist.all_reduce(one)
    counted += one
    step += 1
    if step % 5 == 0 and rank == 0:
        torch.save({"step": step, "counted": counted, "model": model.module.state_dict()}, "checkpoint.new")
        os.replace("checkpoint.new", "checkpoint.pt")
    progress.say_step(rank, step)
progress.say_done(rank, began, step, counted.item() / dist.get_world_size())
dist.destroy_process_group()
