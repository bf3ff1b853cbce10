#!/usr/bin/python3
"""training_test.py DLRUN_TRAIN [PART...]: real trainings on GPUs. Needs one GPU, and two for the parts of two ranks; the data of
Debian's dataset-fashion-mnist or DLRUN_FASHION. A part that needs more GPUs than there are fails, and says so."""
import time

from trainings import LONGEST, Trainings, main


class Training(Trainings):
    def test_converges_and_goes_on_from_gpu_to_cpu_and_back(self):
        first = self.run_one(epochs=2, precision="bf16")
        self.assertIn("on GPU 0: NVIDIA", first)
        middle = self.run_one(epochs=3, device="cpu", precision="f32")
        self.assertIn("resuming from", middle)
        last = self.run_one(epochs=12, precision="bf16")
        self.assertIn("resuming from", last)
        self.assertGreater(self.accuracy(last), 91)

    def test_auto_takes_the_gpu_that_is_seen_and_else_the_cpu(self):
        small = {"data": {"format": "synthetic", "samples": 256}, "epochs": 1}
        self.assertIn("on GPU 0: ", self.run_one(device="auto", **small))
        self.setUp()
        self.assertIn("on the CPU: no usable GPU", self.run_one({"CUDA_VISIBLE_DEVICES": ""}, device="auto", **small))

    def test_precisions_reach_the_same_loss(self):
        accuracies = []
        for precision in ("f32", "tf32"):
            self.setUp()
            accuracies.append(self.accuracy(self.run_one(epochs=2, precision=precision)))
        self.assertAlmostEqual(*accuracies, delta=2.0)

    def test_two_ranks_sum_on_the_gpus_what_they_sum_through_the_host(self):
        accuracies = []
        for environment in ({}, {"DLRUN_ALLREDUCE": "mpi"}):
            self.setUp()
            begin = time.monotonic()
            world = self.ranks(environment, epochs=3, precision="bf16")
            codes = world.wait(LONGEST)
            print(f"--- two ranks {environment} {time.monotonic() - begin:.1f} s\n{world.text(0)}\n{world.text(1)}", flush=True)
            self.assertEqual(codes, [0, 0])
            where = "gradients go through the host" if environment else "gradients are summed on the GPUs by NCCL"
            self.assertIn(where, world.text(0))
            accuracies.append(self.accuracy(world.text(0)))
        self.assertAlmostEqual(*accuracies, delta=1.0)

    def test_a_rank_that_is_killed_is_named_and_nobody_hangs(self):
        for victim, witness in ((1, 0), (0, 1)):
            self.setUp()
            world = self.ranks(epochs=10000, precision="bf16")
            while "epoch 2/" not in world.text(0) and world.processes[0].poll() is None:
                time.sleep(0.05)
            begin = time.monotonic()
            world.kill(victim)
            code = world.wait(LONGEST)[witness]
            print(f"--- rank {victim} killed: rank {witness} ends with {code} after {time.monotonic() - begin:.2f} s\n"
                  f"{world.text(witness)[-600:]}", flush=True)
            self.assertEqual(code, 71)
            self.assertRegex(world.text(witness), rf"rank {victim} on \S+ is gone")



if __name__ == "__main__":
    main()
