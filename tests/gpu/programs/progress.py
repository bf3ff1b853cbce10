"""What the training programs beside it share: who a rank is, how far the training is, and what it came to. They run in the folder
of the test, and write there."""
import ctypes
import json
import os
import time

STEPS = int(os.environ["STEPS"])
GPUS = int(os.environ["GPUS"])  # of the job, one per rank
PAUSE = 0.1  # seconds a step: there must be a middle in which it can be ended


def write(name, text):
    with open(name + ".new", "w") as file:
        file.write(text)
    os.replace(name + ".new", name)


def device_uuid(ordinal):
    """The device that CUDA calls `ordinal` in this process, by a name that is the same in every process."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    for code in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), ordinal), cuda.cuDeviceGetUuid(uuid, device)):
        assert code == 0, f"libcuda: error {code} for device {ordinal}"
    return bytes(uuid).hex()


def say_who(rank, ordinal):
    write(f"rank{rank}", json.dumps({"pid": os.getpid(), "device": device_uuid(ordinal)}))


def say_step(rank, step):
    if rank == 0:
        write("step", str(step))
    time.sleep(PAUSE)


def say_done(rank, began, steps, counted):
    if rank == 0:
        write("done", json.dumps({"from": began, "steps": int(steps), "counted": int(counted)}))
