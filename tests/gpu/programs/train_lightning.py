"""Lightning's Trainer with strategy ddp; the ranks are dlrun's."""
import os

import progress
import torch

try:
    import lightning.pytorch as lightning
    from lightning.pytorch.callbacks import ModelCheckpoint
except ImportError:
    import pytorch_lightning as lightning
    from pytorch_lightning.callbacks import ModelCheckpoint


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.register_buffer("counted", torch.zeros(1))

    def training_step(self, batch, _):
        one = torch.ones(1, device=self.device)
        torch.distributed.all_reduce(one)
        self.counted += one / torch.distributed.get_world_size()
        return self.layer(batch).square().mean()

    def on_train_batch_end(self, *_):
        progress.say_step(self.global_rank, self.global_step)

    def on_train_start(self):
        self.began = self.global_step
        progress.say_who(self.global_rank, self.device.index)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


trainer = lightning.Trainer(accelerator="gpu", devices=progress.GPUS, num_nodes=1, strategy="ddp", max_steps=progress.STEPS, logger=False,
                            enable_progress_bar=False, enable_model_summary=False,
                            callbacks=[ModelCheckpoint(dirpath="checkpoints", every_n_train_steps=5, save_last=True)])
data = torch.utils.data.DataLoader(torch.randn(4096, 8), batch_size=16)
model = Model()
last = "checkpoints/last.ckpt"
trainer.fit(model, data, ckpt_path=last if os.path.exists(last) else None)
progress.say_done(trainer.global_rank, model.began, trainer.global_step, model.counted.item())
