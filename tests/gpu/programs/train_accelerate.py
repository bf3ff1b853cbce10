"""Hugging Face accelerate: Accelerator() and prepare()."""
import os

import progress
import torch

from accelerate import Accelerator

accelerator = Accelerator()
rank = accelerator.process_index
progress.say_who(rank, accelerator.device.index)
model = torch.nn.Linear(8, 1)
step, counted = 0, torch.zeros(1)
if os.path.exists("checkpoint.pt"):
    state = torch.load("checkpoint.pt", map_location="cpu")
    step, counted = state["step"], state["counted"]
    model.load_state_dict(state["model"])
began = step
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
while step < progress.STEPS:
    optimizer.zero_grad()
    accelerator.backward(model(torch.randn(16, 8, device=accelerator.device)).square().mean())
    optimizer.step()
    counted += accelerator.reduce(torch.ones(1, device=accelerator.device), reduction="sum").cpu()
    step += 1
    if step % 5 == 0 and accelerator.is_main_process:
        torch.save({"step": step, "counted": counted, "model": accelerator.unwrap_model(model).state_dict()}, "checkpoint.new")
        os.replace("checkpoint.new", "checkpoint.pt")
    progress.say_step(rank, step)
progress.say_done(rank, began, step, counted.item() / accelerator.num_processes)
accelerator.end_training()
