#!/usr/bin/env python3
"""The callbacks of share/python with the Hugging Face Trainer and with Lightning: an unchanged script plus one line reports its steps,
saves and ends with 75 when it is asked to, and goes on from there at its next start. A socket stands for the agent.

    tests/gpu/callbacks_test.py [transformers] [lightning]      by hand, where these are installed"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "share" / "python"

TRANSFORMERS = """
import torch
from transformers import Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels):
        out = self.layer(x)
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}
data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(4000)]
args = TrainingArguments(output_dir="out", per_device_train_batch_size=4, num_train_epochs=STEPS / 1000, save_strategy="no", report_to=[],
                         logging_steps=5, disable_tqdm=True)
trainer = Trainer(model=Model(), args=args, train_dataset=data)
import dlrun_transformers; dlrun_transformers.attach(trainer)
trainer.train()
"""
LIGHTNING = """
import torch
try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl
class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        return (self.layer(batch) ** 2).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)
data = torch.utils.data.DataLoader(torch.randn(4000, 4), batch_size=4)
trainer = pl.Trainer(max_steps=STEPS, logger=False, enable_checkpointing=False, enable_progress_bar=False, default_root_dir="out", devices=1)
import dlrun_lightning; dlrun_lightning.attach(trainer)
trainer.fit(Model(), data)
"""


def start(folder, script, steps, ask):
    """Runs the script as a rank: (exit code, what it reported). With `ask` it is asked to save and stop once it tells a loss."""
    name = os.path.join(folder, "control")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
    process = subprocess.Popen([sys.executable, "-c", script.replace("STEPS", str(steps))], cwd=folder,
                               env={**os.environ, "PYTHONPATH": str(PYTHON), "DLRUN_CONTROL": name, "DLRUN_RANK": "0"})
    connection, _ = listener.accept()
    reports = []
    for line in connection.makefile():
        reports.append(json.loads(line))
        if ask and "loss" in reports[-1]:
            connection.sendall(b'{"checkpoint": "now", "stop": true}\n')
            ask = False
    os.unlink(name)
    return process.wait(), reports


def check(library, script):
    with tempfile.TemporaryDirectory() as folder:
        code, reports = start(folder, script, 1000000, ask=True)
        saved = [one["saved"] for one in reports if "saved" in one]
        assert code == 75, (library, code, reports[-3:])
        assert len(saved) == 1 and saved[0] > 0, (library, saved)
        steps = [one for one in reports if "step" in one]
        assert steps[-1]["steps"] >= steps[-1]["step"], (library, steps[-1])
        code, again = start(folder, script, saved[0] + 2000, ask=False)
        assert code == 0, (library, code, again[-3:])
        first = next(one["step"] for one in again if "step" in one)
        assert first > saved[0], (library, first, saved)
        print(f"{library}: asked to stop at step {saved[0]}, exit code 75; the next start went on with step {first}")


if __name__ == "__main__":
    known = {"transformers": TRANSFORMERS, "lightning": LIGHTNING}
    for wanted in sys.argv[1:] or known:
        check(wanted, known[wanted])
