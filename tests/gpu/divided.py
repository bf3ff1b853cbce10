"""What the trainings of divided models share: losses and weights to be compared, of runs in one folder after another."""
import hashlib
import json
import subprocess

import trainings

LOSSES = ("loss", "epoch_loss", "validation_loss")


class Divided(trainings.Trainings):
    def last_step(self):
        path = self.folder / "metrics.jsonl"
        whole = path.read_text().split("\n")[:-1] if path.exists() else []
        return json.loads(whole[-1])["step"] if whole else 0

    def lines_so_far(self):
        return len(self.metrics()) if (self.folder / "metrics.jsonl").exists() else 0

    def one(self, **more):
        before = self.lines_so_far()
        self.run_one(**self.settings(**more))
        return self.losses(before)

    def losses(self, skipped):
        """Of the first step, means of 50 steps, of epochs and of the validation data, by step and name."""
        return {(line["step"], name): line[name] for line in self.metrics()[skipped:] for name in LOSSES if name in line}

    def exported(self):
        """A file of all parameters of the newest checkpoint, whoever wrote its parts."""
        target = self.folder / "whole.safetensors"
        subprocess.run([trainings.TRAIN, "--export", target, "--checkpoint", self.folder / "ckpt"], check=True, stdout=subprocess.DEVNULL)
        return target.read_bytes()

    def weights(self):
        """The bits of all parameters of the newest checkpoint."""
        return hashlib.sha256(self.exported()).hexdigest()

    def assert_near(self, ours, peers, bound):
        self.assertEqual(set(ours), set(peers))
        worst = max(abs(ours[key] - peers[key]) / peers[key] for key in peers)
        print(f"--- {len(ours)} losses of {list(peers.values())}, at most {worst:.1e} apart", flush=True)
        self.assertLess(worst, bound)

    def assert_evaluates_on_a_cpu(self):
        """To the validation loss that was told last."""
        done = subprocess.run([trainings.TRAIN, "--evaluate", self.data / "tokens", "--checkpoint", self.folder / "ckpt"], check=True,
                              text=True, stdout=subprocess.PIPE)
        told = [line["validation_loss"] for line in self.metrics() if "validation_loss" in line][-1]
        self.assertAlmostEqual(json.loads(done.stdout)["loss"], told, 3)
