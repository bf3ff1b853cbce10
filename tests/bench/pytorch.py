"""Runs the peer at its best: PyTorch ranks started directly (no torchrun start-up), pinned, with OpenBLAS, AVX-512
kernels, freed memory kept in huge pages, and gloo on the loopback interface. See pytorch_rank.py for what a rank does.
"""
import json
import os
import pathlib
import subprocess
import time

import figures
import training

LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"


def processor_has(flag):
    return f" {flag} " in pathlib.Path("/proc/cpuinfo").read_text().replace("\n", " ")


def tuned(ranks):
    blas = pathlib.Path(LIBRARIES, "openblas-openmp")
    if not blas.is_dir():
        figures.fail(f"{blas} is missing\n  hint: share/setup.sh --test")
    # Fresh pages are dear on virtual machines: one arena, nothing given back, huge pages. Else the peer loses by malloc.
    settings = figures.environment(
        OMP_NUM_THREADS=1, LD_LIBRARY_PATH=blas, GLOO_SOCKET_IFNAME="lo", PYTHONUNBUFFERED=1,
        MALLOC_MMAP_MAX_=0, MALLOC_TRIM_THRESHOLD_=1 << 36, MALLOC_TOP_PAD_=1 << 26, MALLOC_ARENA_MAX=1,
        GLIBC_TUNABLES="glibc.malloc.hugetlb=1",
        WORLD_SIZE=ranks, MASTER_ADDR="127.0.0.1", MASTER_PORT=20000 + os.getpid() % 20000)
    if processor_has("avx512f"):  # Debian's OpenBLAS does not know newer processors by name
        settings.update(OPENBLAS_CORETYPE="SKYLAKEX", ATEN_CPU_CAPABILITY="avx512")
    return settings


def run_ranks(program, words, ranks):
    """What rank 0 of `program` printed, as JSON; each rank on a core of its own."""
    settings = tuned(ranks)
    rank_program = pathlib.Path(__file__).with_name(program)
    processes = []
    for rank in range(ranks):
        command = ["taskset", "-c", str(rank % os.cpu_count()), "/usr/bin/python3", str(rank_program), *map(str, words)]
        processes.append(subprocess.Popen(command, env={**settings, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                                          stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        figures.fail(f"PyTorch failed: exit codes {[process.returncode for process in processes]}")
    return json.loads(outputs[0])


def run(data, steps, ranks=2):
    """A training.Measured of `steps` steps."""
    started = time.time()
    seen = run_ranks("pytorch_rank.py", [data, steps], ranks)
    return training.Measured(started, dict(enumerate(seen["ends"], 1)), seen["images_per_step"], seen["peak_mib"])
