"""What the trainings on GPUs share: a job of dlrun-train in a folder of its own, run as one process or as ranks."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

from ranks import Ranks

TRAIN = sys.argv[1]
DATA = os.environ.get("DLRUN_FASHION", "/usr/share/datasets/fashion-mnist")
LONGEST = 240  # seconds for what takes a few: a hang ends here and is a failure


WORDS = "the and of that light earth god said unto them which was in day night waters made".split()


def prepare_tokens(folder, lines):
    """folder/tokens: the bytes of lines of these words, a tenth of them for validation."""
    draw = random.Random(1)
    (folder / "texts").mkdir()
    (folder / "texts/book.txt").write_text("\n".join(" ".join(draw.choice(WORDS) for _ in range(12)) for _ in range(lines)))
    subprocess.run([TRAIN, "--prepare", "texts", "--into", "tokens", "--tokens", "bytes", "--validation", "0.1"], cwd=folder,
                   stdout=subprocess.DEVNULL, check=True, timeout=LONGEST)


def of_shared_gpu(count, rank):
    """What lets so many ranks use one GPU where there are no more of them: NCCL refuses to, unless they say that they are on several
    hosts. Their results are those of several GPUs; their times are not."""
    listed = subprocess.run(["nvidia-smi", "-L"], text=True, stdout=subprocess.PIPE, check=True).stdout
    return {} if listed.count("GPU ") >= count else {"CUDA_VISIBLE_DEVICES": "0", "NCCL_HOSTID": str(rank)}


class Trainings(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-gpu-"))

    def job(self, **train):
        settings = {"model": "mnist-cnn", "data": {"format": "idx", "dir": DATA}, "batch": 128, "epochs": 4,
                    "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight-decay": 1e-4},
                    "schedule": {"warmup": "100steps", "decay": "cosine"}, "seed": 1, "device": "cuda", **train}
        settings = {name: value for name, value in settings.items() if value is not None}
        path = self.folder / "job.json"
        path.write_text(json.dumps({"value": {"name": "gpu", "train": settings,
                                              "checkpoint": {"dir": str(self.folder / "ckpt"), "every": "1epoch"}},
                                    "sources": {}}))
        return [TRAIN, "--config", str(path)]

    def run_one(self, environment=None, **train):
        begin = time.monotonic()
        done = subprocess.run(self.job(**train), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=LONGEST, env={**os.environ, "DLRUN_COMM": "none",
                                                    "DLRUN_RUN_DIR": str(self.folder), **(environment or {})})
        print(f"--- {train} {time.monotonic() - begin:.1f} s\n{done.stdout}", flush=True)
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def ranks(self, environment=None, count=2, of_rank=lambda rank: {}, **train):
        return Ranks(self.job(**train), count, self.folder, {"DLRUN_RUN_DIR": str(self.folder), **(environment or {})},
                     lambda rank: {**of_shared_gpu(count, rank), **of_rank(rank)})

    def accuracy(self, text):
        return float(re.findall(r"test accuracy ([\d.]+) %", text)[-1])

    def metrics(self):
        """The lines of metrics.jsonl, of all runs in this folder."""
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]


def main():
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
