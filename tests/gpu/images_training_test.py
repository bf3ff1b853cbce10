#!/usr/bin/python3
"""images_training_test.py DLRUN_TRAIN [PART...]: a folder of PNG and JPEG images, drawn here, trained on a GPU until it tells
four patterns apart, on the CPU and on the GPU again. Needs one GPU, numpy and Pillow."""
import numpy
from PIL import Image
from trainings import Trainings, main

EXTENT = 40  # pixels of a side, scaled to 32 when read
CLASSES = ("disc", "across", "down", "frame")


def pattern(kind, random):
    """0 and 1 for each pixel: one of the classes at a random place and size."""
    y, x = numpy.mgrid[0:EXTENT, 0:EXTENT]
    size = random.integers(6, 12)
    if kind == "across":
        return (y + random.integers(size)) // (size // 2) % 2
    if kind == "down":
        return (x + random.integers(size)) // (size // 2) % 2
    row, column = random.integers(size, EXTENT - size, 2)
    if kind == "disc":
        return ((y - row) ** 2 + (x - column) ** 2 < size * size).astype(int)
    far = numpy.maximum(abs(y - row), abs(x - column))
    return ((far < size) & (far >= size - 3)).astype(int)


def image(kind, random):
    """The pattern in one random colour on another, with noise."""
    colours = random.integers(0, 120, 3), random.integers(135, 256, 3)
    pixels = numpy.stack(colours)[pattern(kind, random)]
    return Image.fromarray(numpy.clip(pixels + random.normal(0, 12, pixels.shape), 0, 255).astype(numpy.uint8))


class ImageTraining(Trainings):
    def draw(self):
        random = numpy.random.default_rng(7)
        for part, count in (("train", 160), ("test", 40)):
            for kind in CLASSES:
                folder = self.folder / "images" / part / kind
                folder.mkdir(parents=True)
                for number in range(count):
                    image(kind, random).save(folder / f"{number}.{'png' if number % 2 else 'jpg'}")

    def test_learns_a_folder_of_images_from_gpu_to_cpu_and_back(self):
        self.draw()
        job = {"model": "resnet18-cifar", "batch": 32, "schedule": {"warmup": "20steps"},
               "optimizer": {"name": "sgd", "lr": 0.02, "momentum": 0.9},
               "data": {"format": "images", "dir": str(self.folder / "images"), "size": 32}}
        first = self.run_one(epochs=3, precision="bf16", **job)
        self.assertIn("on GPU 0: NVIDIA", first)
        middle = self.run_one(epochs=4, device="cpu", precision="f32", **job)
        self.assertIn("resuming from", middle)
        last = self.run_one(epochs=10, precision="bf16", **job)
        self.assertIn("resuming from", last)
        self.assertGreater(self.accuracy(last), 90)  # by chance: 25


if __name__ == "__main__":
    main()
