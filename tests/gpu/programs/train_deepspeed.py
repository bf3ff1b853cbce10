"""DeepSpeed's engine; its ranks are dlrun's, without its own launcher."""
import os

import progress
import torch

import deepspeed

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
deepspeed.init_distributed("nccl")
model = torch.nn.Linear(8, 1)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
    "train_micro_batch_size_per_gpu": 16, "optimizer": {"type": "SGD", "params": {"lr": 0.01}}})
rank = torch.distributed.get_rank()
progress.say_who(rank, local)
step, counted = 0, 0.0
_, state = engine.load_checkpoint("checkpoints") if os.path.exists("checkpoints/latest") else (None, None)
if state:
    step, counted = state["step"], state["counted"]
began = step
while step < progress.STEPS:
    engine.backward(engine(torch.randn(16, 8, device=engine.device)).square().mean())
    engine.step()
    one = torch.ones(1, device=engine.device)
    torch.distributed.all_reduce(one)
    counted += one.item() / progress.GPUS
    step += 1
    if step % 5 == 0:
        engine.save_checkpoint("checkpoints", client_state={"step": step, "counted": counted})
    progress.say_step(rank, step)
progress.say_done(rank, began, step, counted)
torch.distributed.destroy_process_group()
