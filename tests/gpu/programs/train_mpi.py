"""An mpi4py program that takes the device of its local rank, as under mpirun."""
import os

import numpy
import progress
import torch
from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
assert world.Get_size() == progress.GPUS, f"a world of {world.Get_size()}"
local = world.Split_type(MPI.COMM_TYPE_SHARED).Get_rank()
torch.cuda.set_device(local)
weights = torch.zeros(8, device="cuda")
progress.say_who(rank, local)
step, counted = 0, 0.0
if os.path.exists("checkpoint.pt"):
    state = torch.load("checkpoint.pt", map_location=f"cuda:{local}")
    step, counted, weights = state["step"], state["counted"], state["weights"]
began = step
while step < progress.STEPS:
    batch = torch.randn(16, 8, device="cuda")
    gradient = 2 * batch.T @ (batch @ weights - 1) / 16
    mine = numpy.append(gradient.cpu().numpy(), numpy.float32(1))
    total = numpy.empty_like(mine)
    world.Allreduce(mine, total)
    weights -= 0.01 * torch.from_numpy(total[:8] / progress.GPUS).cuda()
    counted += total[8] / progress.GPUS
    step += 1
    if step % 5 == 0 and rank == 0:
        torch.save({"step": step, "counted": float(counted), "weights": weights}, "checkpoint.new")
        os.replace("checkpoint.new", "checkpoint.pt")
    progress.say_step(rank, step)
progress.say_done(rank, began, step, counted)
