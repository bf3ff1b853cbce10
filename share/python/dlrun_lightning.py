"""Lets a Lightning Trainer report to dlrun, save on request, and stop at the walltime with a checkpoint from which the next start
goes on. One line in an unchanged script, before trainer.fit():

    import dlrun_lightning; dlrun_lightning.attach(trainer)

Beside it: dlrun_client.py. The checkpoint is dlrun.ckpt in the trainer's default_root_dir; fit() resumes from it where it is there."""
import os

import dlrun_client

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback


def attach(trainer, every=10):
    """`every`: after how many batches the ranks agree on whether a checkpoint was requested."""
    file = os.path.join(trainer.default_root_dir, "dlrun.ckpt")
    trainer.callbacks.append(DlrunCallback(file, every))
    fit = trainer.fit

    def resumed(*arguments, ckpt_path=None, **more):
        return fit(*arguments, ckpt_path=ckpt_path or (file if os.path.exists(file) else None), **more)
    trainer.fit = resumed


class DlrunCallback(Callback):
    def __init__(self, file, every):
        self.file, self.every = file, every

    def on_train_start(self, trainer, pl_module):
        self.dlrun = dlrun_client.connect()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        steps = trainer.estimated_stepping_batches
        self.dlrun.report(step=trainer.global_step, steps=int(steps) if steps != float("inf") else None,
                          epoch=trainer.current_epoch + 1, epochs=trainer.max_epochs, loss=loss)
        if (batch_idx + 1) % self.every == 0 and self.dlrun.checkpoint_requested(
                lambda asked: trainer.strategy.reduce_boolean_decision(asked, all=False)):
            with self.dlrun.saving(trainer.global_step):
                trainer.save_checkpoint(self.file + ".new")  # every rank calls it; rank 0 writes
                if trainer.is_global_zero:
                    os.replace(self.file + ".new", self.file)
                trainer.strategy.barrier()
            self.dlrun.stop_if_requested()  # exits with 75: run me again

    def on_train_end(self, trainer, pl_module):
        self.dlrun.close()
