#!/usr/bin/python3
"""A Python program on MPICH, by its C interface: Debian's mpi4py is for Open MPI alone."""
import ctypes
import socket

WORLD, INT, SUM = 0x44000000, 0x4C000405, 0x58000003  # of MPICH's ABI
mpi = ctypes.CDLL("libmpich.so.12", mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
own = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(ctypes.byref(own), ctypes.byref(total), 1, INT, SUM, WORLD)
print(f"rank {rank.value} of {size.value} on {socket.gethostname()}: {total.value}", flush=True)
mpi.MPI_Finalize()
