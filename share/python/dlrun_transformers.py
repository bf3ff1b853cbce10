"""Lets a Hugging Face Trainer report to dlrun, save on request, and stop at the walltime with a checkpoint from which the next
start goes on. One line in an unchanged script, before trainer.train():

    import dlrun_transformers; dlrun_transformers.attach(trainer)

Beside it: dlrun_client.py. Outside dlrun nothing changes but that training resumes from the newest checkpoint of output_dir."""
import os
import time

import dlrun_client
import torch
from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint


def attach(trainer, every=10):
    """`every`: after how many steps the ranks agree on whether a checkpoint was requested."""
    trainer.add_callback(DlrunCallback(every))
    train, folder = trainer.train, trainer.args.output_dir
    found = get_last_checkpoint(folder) if os.path.isdir(folder) else None

    def resumed(resume_from_checkpoint=None, **more):
        return train(resume_from_checkpoint=resume_from_checkpoint or found, **more)
    trainer.train = resumed


class DlrunCallback(TrainerCallback):
    def __init__(self, every):
        self.every, self.loss, self.stop, self.asked_at = every, None, False, None

    def on_train_begin(self, args, state, control, **_):
        self.dlrun = dlrun_client.connect()

    def on_log(self, args, state, control, logs=None, **_):
        self.loss = (logs or {}).get("loss", self.loss)

    def on_step_end(self, args, state, control, **_):
        self.dlrun.report(step=state.global_step, steps=state.max_steps, epoch=int(state.epoch or 0) + 1,
                          epochs=int(args.num_train_epochs), loss=self.loss)
        if state.global_step % self.every == 0 and self.dlrun.checkpoint_requested(lambda asked: _any_rank(asked, args.device)):
            control.should_save, self.asked_at = True, time.monotonic()
            self.stop = control.should_training_stop = self.dlrun.stop_requested
        return control

    def on_save(self, args, state, control, **_):
        began, self.asked_at = self.asked_at or time.monotonic(), None
        self.dlrun.saved(state.global_step, time.monotonic() - began)

    def on_train_end(self, args, state, control, **_):
        if self.stop:
            self.dlrun.stop_if_requested()  # exits with 75: run me again
        self.dlrun.close()


def _any_rank(asked, device):
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return asked
    flag = torch.tensor([float(asked)], device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item())
