#!/usr/bin/python3
"""gan_training_test.py DLRUN_TRAIN [PART...]: a DCGAN of Fashion-MNIST's garments on GPUs, in every precision, from GPU to CPU
and back, and by two ranks. Needs what training_test.py needs, and Pillow, which reads the grids of samples."""
import math
import time

from PIL import Image, ImageStat
from trainings import DATA, LONGEST, Trainings, main

# A tenth of the images: 47 steps per epoch.
GAN = {"model": "dcgan", "data": {"format": "idx", "dir": DATA, "train": 0.1}, "schedule": {},
       "optimizer": {"name": "adam", "lr": 2e-4, "beta1": 0.5}}


class GanTraining(Trainings):
    def checked_grid(self, epoch):
        """Eight rows of eight garments of 28x28 pixels, two pixels apart; not one grey."""
        grid = Image.open(self.folder / f"samples-epoch-{epoch:04}.png")
        self.assertEqual(grid.size, (238, 238))
        self.assertGreater(ImageStat.Stat(grid.crop((0, 0, 28, 28))).stddev[0], 2)
        return grid

    def check_losses(self):
        """Both networks learn: no loss is 0 or without bounds."""
        told = [line for line in self.metrics() if "loss_d" in line]
        self.assertGreater(len(told), 0)
        for line in told:
            for name in ("loss_d", "loss_g"):
                self.assertTrue(math.isfinite(line[name]) and 0.001 < line[name] < 20, line)
        return told

    def test_resumes_from_gpu_to_cpu_and_back(self):
        self.assertIn("on GPU 0: NVIDIA", self.run_one(epochs=3, precision="bf16", **GAN))
        self.assertIn("resuming from", self.run_one(epochs=4, device="cpu", precision="f32", **GAN))
        self.assertIn("resuming from", self.run_one(epochs=8, precision="tf32", **GAN))
        for epoch in range(1, 9):
            self.checked_grid(epoch)
        self.check_losses()

    def test_shows_on_the_gpu_what_the_cpu_shows_of_the_same_weights(self):
        # Learning nothing, the second run shows the first one's generator again, on the other device.
        still = {**GAN, "optimizer": {**GAN["optimizer"], "lr": 1e-12}}
        self.run_one(epochs=2, precision="f32", **GAN)
        of_gpu = self.checked_grid(2)
        self.run_one(epochs=3, device="cpu", precision="f32", **still)
        of_cpu = self.checked_grid(3)
        off = [abs(a - b) for a, b in zip(of_gpu.getdata(), of_cpu.getdata(), strict=True)]
        print(f"pixels differ by at most {max(off)}, on average {sum(off) / len(off):.3f} of 255", flush=True)
        self.assertLess(sum(off) / len(off), 8)  # batch norm's running statistics move on even so

    def test_every_precision_learns(self):
        for precision in ("f32", "tf32", "bf16"):
            with self.subTest(precision):
                self.setUp()
                self.run_one(epochs=2, precision=precision, **GAN)
                self.checked_grid(2)
                self.check_losses()

    def test_two_ranks_sum_both_networks_gradients_on_the_gpus(self):
        begin = time.monotonic()
        world = self.ranks(epochs=2, precision="bf16", **GAN)
        codes = world.wait(LONGEST)
        print(f"--- two ranks {time.monotonic() - begin:.1f} s\n{world.text(0)}\n{world.text(1)}", flush=True)
        self.assertEqual(codes, [0, 0])
        self.assertIn("gradients are summed on the GPUs by NCCL", world.text(0))
        self.checked_grid(2)
        self.check_losses()


if __name__ == "__main__":
    main()
