"""JAX over two processes of one GPU each."""
import os

import progress

import jax
import numpy
from jax.experimental import multihost_utils

jax.distributed.initialize(num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"]))
rank = jax.process_index()
assert jax.local_device_count() == 1 and jax.device_count() == progress.GPUS, f"{jax.local_devices()} of {jax.devices()}"
assert jax.local_devices()[0].platform == "gpu"
progress.say_who(rank, 0)
step, counted, weights = 0, 0.0, numpy.zeros(8, numpy.float32)
if os.path.exists("checkpoint.npz"):
    state = numpy.load("checkpoint.npz")
    step, counted, weights = int(state["step"]), float(state["counted"]), state["weights"]
began = step
gradient = jax.jit(jax.grad(lambda w, x: ((x @ w - 1) ** 2).mean()))
while step < progress.STEPS:
    batch = numpy.random.default_rng(step * progress.GPUS + rank).standard_normal((16, 8), numpy.float32)
    both = multihost_utils.process_allgather(numpy.append(numpy.asarray(gradient(weights, batch)), numpy.float32(1)))
    both = numpy.asarray(both).reshape(progress.GPUS, 9)
    weights = weights - 0.01 * both[:, :8].mean(axis=0)
    counted += both[:, 8].sum() / progress.GPUS
    step += 1
    if step % 5 == 0 and rank == 0:
        with open("checkpoint.new", "wb") as file:
            numpy.savez(file, step=step, counted=counted, weights=weights)
        os.replace("checkpoint.new", "checkpoint.npz")
    progress.say_step(rank, step)
progress.say_done(rank, began, step, counted)
