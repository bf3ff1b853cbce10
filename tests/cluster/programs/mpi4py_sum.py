#!/usr/bin/python3
"""mpi4py: who we are, and a sum over all ranks."""
import socket

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print(f"rank {world.rank} of {world.size} on {socket.gethostname()}: {total}", flush=True)
