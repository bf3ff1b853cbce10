#!/usr/bin/env python3
"""Libraries that look for a launcher in the environment find dlrun's ranks: for each, what it reads (as its source has it)
gives the rank's own place. In a Slurm allocation of two nodes with two ranks each."""
import json
import os

import support

# What a batch job of Slurm has by itself.
BATCH = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NAME": "train", "SLURM_NODELIST": "n[1-2]", "SLURM_NTASKS": "1",
         "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_CPUS_PER_TASK": "2", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
PLACE = [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)]  # rank, local rank, node


def accelerate(env):
    """accelerate.state.PartialState, utils.get_int_from_env"""
    def first(*names):
        return next(int(env[name]) for name in names if int(env.get(name, -1)) >= 0)
    assert env["MASTER_ADDR"] and int(env["MASTER_PORT"])
    assert first("LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE") == 2
    return first("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"), first("LOCAL_RANK", "MPI_LOCALRANKID"), first("WORLD_SIZE", "PMI_SIZE")


def lightning(env):
    """Lightning's order: TorchElasticEnvironment, SLURMEnvironment (with its checks), LightningEnvironment"""
    if "TORCHELASTIC_RUN_ID" in env:
        assert int(env["GROUP_RANK"]) == int(env["RANK"]) // 2
        return int(env["RANK"]), int(env["LOCAL_RANK"]), int(env["WORLD_SIZE"])
    assert "SLURM_NTASKS" in env and env["SLURM_JOB_NAME"] not in ("bash", "interactive")
    assert int(env["SLURM_NTASKS"]) == 1 or int(env["SLURM_NTASKS_PER_NODE"]) == 2
    assert int(env["SLURM_NNODES"]) == 2 and int(env["SLURM_NODEID"]) == int(env["SLURM_PROCID"]) // 2
    return int(env["SLURM_PROCID"]), int(env["SLURM_LOCALID"]), int(env["SLURM_NTASKS"])


def idr_torch(env):
    assert env["SLURM_JOB_NODELIST"] and int(env["SLURM_CPUS_PER_TASK"])
    return int(env["SLURM_PROCID"]), int(env["SLURM_LOCALID"]), int(env["SLURM_NTASKS"])


def submitit(env):
    """submitit.slurm.SlurmJobEnvironment"""
    assert int(env["SLURM_JOB_NUM_NODES"]) == 2 and int(env["SLURM_NODEID"]) == int(env["SLURM_PROCID"]) // 2
    return int(env["SLURM_PROCID"]), int(env["SLURM_LOCALID"]), int(env["SLURM_NTASKS"])


def deepspeed(env):
    """deepspeed.init_distributed: these, else it looks for mpi4py"""
    assert all(name in env for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"))
    return int(env["RANK"]), int(env["LOCAL_RANK"]), int(env["WORLD_SIZE"])


def torchrun(env):
    """torch.distributed.elastic's names"""
    assert env["ROLE_RANK"] == env["RANK"] and env["ROLE_WORLD_SIZE"] == env["WORLD_SIZE"] and env["ROLE_NAME"]
    assert int(env["GROUP_WORLD_SIZE"]) == 2 and int(env["TORCHELASTIC_RESTART_COUNT"]) == 0 and int(env["TORCHELASTIC_MAX_RESTARTS"]) == 3
    assert env["TORCHELASTIC_USE_AGENT_STORE"] == "False" and env["TORCHELASTIC_RUN_ID"]
    assert os.path.dirname(env["TORCHELASTIC_ERROR_FILE"]).endswith("/logs")
    return int(env["RANK"]), int(env["LOCAL_RANK"]), int(env["WORLD_SIZE"])


READERS = {"plain": [idr_torch, submitit, lightning], "mpi": [idr_torch, submitit], "jax": [idr_torch, submitit], "horovod": [idr_torch],
           "pytorch": [accelerate, lightning, idr_torch, submitit, deepspeed, torchrun],
           "lightning": [accelerate, lightning, idr_torch, torchrun], "deepspeed": [deepspeed, accelerate, idr_torch, torchrun],
           "nemo": [lightning, torchrun], "megatron-lm": [torchrun], "megatron-deepspeed": [deepspeed, torchrun], "torchtitan": [torchrun]}


class Libraries(support.Case):
    def plan(self, framework):
        nodes = [{"host": host, "slots": 2, "cpus": 4, "gpus": None} for host in ("n1", "n2")]
        allocation = self.write("allocation.json", json.dumps({"schema": "dlrun.allocation/1", "scheduler": "slurm", "job_id": "7", "array_index": None,
                                                               "nodes": nodes, "end_time": None, "evidence": []}))
        code, out, err = self.dlrun("plan", "--json", "--allocation", allocation, "--tasks-per-node", "2", "--retries", "3", "--framework", framework,
                                    "--", "python3", "train.py")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_each_reads_the_ranks_own_place(self):
        for framework, readers in READERS.items():
            plan = self.plan(framework)
            for reader in readers:
                for rank, (index, local, _) in zip(plan["ranks"], PLACE):
                    with self.subTest(f"{framework} {reader.__name__} rank {index}"):
                        self.assertEqual(reader({**BATCH, **plan["environment"], **rank["environment"]}), (index, local, 4))

    def test_error_files_differ_between_ranks(self):
        files = [rank["environment"]["TORCHELASTIC_ERROR_FILE"] for rank in self.plan("pytorch")["ranks"]]
        self.assertEqual(len(set(files)), 4)


if __name__ == "__main__":
    support.main()
