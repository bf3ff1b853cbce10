#!/usr/bin/python3
"""exchange_test.py DLRUN_TRAIN [PART...]: models leave for other libraries and come from them. A ResNet-18 that was trained here gives
the same scores and accuracy in torchvision and in ONNX Runtime; a torchvision model with weights of its own, loaded here, gives the
same ones on the GPU and on the CPU. Needs one GPU, torch, torchvision, safetensors, onnxruntime, numpy and Pillow."""
import json
import pathlib
import subprocess

import numpy
import onnxruntime
import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file, save_file

from images_training_test import CLASSES, image
from trainings import TRAIN, LONGEST, Trainings, main

SIZE, MEAN, STD = 64, (0.5, 0.4, 0.3), 0.25
TRAINED, TESTED = 24, 6  # images of each class


class Exchange(Trainings):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(7)
        for part, count in (("train", TRAINED), ("test", TESTED)):
            for kind in CLASSES:
                folder = self.folder / "images" / part / kind
                folder.mkdir(parents=True)
                for number in range(count):
                    image(kind, random).resize((SIZE, SIZE)).save(folder / f"{number}.png")

    def job_of(self, **more):
        return {"model": "resnet18", "precision": "f32", "schedule": {},
                "data": {"format": "images", "dir": str(self.folder / "images"), "size": SIZE, "mean": MEAN, "std": STD}, **more}

    def tool(self, *words):
        program = pathlib.Path(TRAIN).resolve()
        done = subprocess.run([program, *map(str, words)], cwd=self.folder, text=True, capture_output=True, check=False, timeout=LONGEST)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def files(self, part):
        """Sorted, as the labels are."""
        return [(path, label) for label, kind in enumerate(sorted(CLASSES))
                for path in sorted((self.folder / "images" / part / kind).iterdir())]

    def pixels(self, part):
        """What the model reads, and the labels."""
        rows = [torch.tensor(numpy.asarray(Image.open(path)).transpose(2, 0, 1).copy()) for path, _ in self.files(part)]
        scaled = (torch.stack(rows).float() / 255 - torch.tensor(MEAN)[:, None, None]) / STD
        return scaled, torch.tensor([label for _, label in self.files(part)])

    def predicted(self):
        """The probabilities of the test images' classes, by dlrun-train on the CPU."""
        told = json.loads(self.tool("--predict", *(path for path, _ in self.files("test")), "--checkpoint", "ckpt"))["predictions"]
        self.assertEqual(len(told), len(self.files("test")))
        return torch.tensor([[score for _, score in sorted((each["label"], each["score"]) for each in row["top"])] for row in told])

    def assert_same(self, scores, peers, what, allowed):
        apart = (scores - peers).abs().max().item()
        print(f"--- {what}: at most {apart:.1e} apart", flush=True)
        self.assertLess(apart, allowed, what)

    def test_a_model_that_was_trained_here_leaves(self):
        self.run_one(epochs=8, **self.job_of(batch=16, optimizer={"name": "sgd", "lr": 0.01, "momentum": 0.9}))
        test, labels = self.pixels("test")
        for name in ("m.safetensors", "m.onnx"):
            self.assertIn(f"wrote {name}", self.tool("--export", name, "--checkpoint", "ckpt"))
        model = torchvision.models.resnet18(num_classes=len(CLASSES))
        missing = model.load_state_dict(load_file(self.folder / "m.safetensors"), strict=False)
        self.assertEqual(missing.unexpected_keys, [])
        self.assertTrue(all(name.endswith("num_batches_tracked") for name in missing.missing_keys), missing.missing_keys)
        with torch.no_grad():
            theirs = model.eval()(test)
        session = onnxruntime.InferenceSession(self.folder / "m.onnx", providers=["CPUExecutionProvider"])
        onnx = torch.tensor(session.run(["scores"], {"image": test.numpy()})[0])
        self.assert_same(onnx, theirs, "ONNX Runtime and torchvision, scores", 1e-3)
        self.assert_same(self.predicted(), theirs.softmax(1), "dlrun and torchvision, probabilities", 1e-4)
        evaluated = json.loads(self.tool("--evaluate", "images", "--checkpoint", "ckpt"))
        of_gpu = [line for line in self.metrics() if "test_accuracy" in line][-1]
        for scores in (theirs, onnx):
            self.assertAlmostEqual((scores.argmax(1) == labels).float().mean().item(), evaluated["top1"], 4)
        self.assertAlmostEqual(of_gpu["test_accuracy"], evaluated["top1"], 4)
        self.assertAlmostEqual(of_gpu["test_loss"], torch.nn.functional.cross_entropy(theirs, labels).item(), 3)
        print(f"--- accuracy {evaluated['top1']} of all three", flush=True)

    # One step that changes no weight: running statistics alone follow, of all images at once in any order.
    def test_a_model_of_torchvision_comes(self):
        torch.manual_seed(5)
        model = torchvision.models.resnet18(num_classes=len(CLASSES))
        weights = {name: value for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}
        save_file(weights, self.folder / "theirs.safetensors")
        images, _ = self.pixels("train")
        test, labels = self.pixels("test")
        with torch.no_grad():
            model.train()(images)
            theirs = model.eval()(test)
        for device in ("cuda", "cpu"):
            self.run_one(**self.job_of(batch=len(images), epochs=1, device=device, optimizer={"name": "sgd", "lr": 0},
                                       **{"init-from": str(self.folder / "theirs.safetensors")}))
            told = [line for line in self.metrics() if "test_loss" in line][-1]
            self.assertAlmostEqual(told["test_loss"], torch.nn.functional.cross_entropy(theirs, labels).item(), 4)
            self.assert_same(self.predicted(), theirs.softmax(1), f"torchvision and dlrun, of running statistics of {device}", 1e-4)
            (self.folder / "ckpt").rename(self.folder / f"of-{device}")


if __name__ == "__main__":
    main()
