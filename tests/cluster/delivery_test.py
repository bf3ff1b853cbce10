#!/usr/bin/env python3
"""Every started rank against plan.json over two nodes: each launcher (Slurm, ssh, mpiexec) and MPI protocol, MPI ranks that
srun starts (engine), and the links of a chain."""
import itertools
import json
import os
import pathlib
import sys

import support
from chain_support import Following
from support import DLRUN

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "delivery"))
import delivery  # noqa: E402  pylint: disable=wrong-import-position

DUMP, DUMP_MPI = os.environ["DELIVERY_DUMP"], os.environ["DELIVERY_DUMP_MPI"]  # set by ctest
# What a host's own shell or Slurm's step has, and no plan: not compared.
OF_THE_HOST = ("SLURM", "SRUN_", "SLURMD_", "SSH_", "LC_", "MAIL", "HOSTNAME", "TMPDIR", "XDG_", "HOME", "USER", "LOGNAME", "SHELL", "PATH", "TERM")


class Delivered(Following, support.Case):
    slurm = True
    nodes = 2
    made = itertools.count()

    def write_job(self, mpi, program=DUMP_MPI, more=""):
        self.write("delivery.yaml", delivery.ADAPTER.format(mpi=mpi))
        self.write("job.yaml", f"name: delivered\nframework: delivery\ncommand: ['{program}', word]\n"
                   f"resources: {{nodes: 2, tasks-per-node: 2, walltime: 5min}}\nlaunch: {{grace: 2s}}\nparallel: {{tensor: 2}}\n{more}"
                   f"environment:\n{delivery.JOB_ENVIRONMENT}  setup: [\"export D_PROLOG=prolog P_SETUP='set up'\", umask 027]\n")

    def environment(self, dumps, mpi):
        os.makedirs(dumps, exist_ok=True)
        os.chmod(dumps, 0o777)
        user = {name: value for name, value in delivery.USER.items() if "\n" not in value}
        return {**user, "DUMP_TO": dumps, "DUMP_MPI": delivery.MPI_LIBRARY.get(mpi, "")}

    def is_delivered(self, run, dumps, user):
        delivered = delivery.Delivery(f"{run}/plan.json", dumps, user, prolog={"D_PROLOG": "prolog", "P_SETUP": "set up"}, run=run)
        self.assertEqual(len(delivered.plan["nodes"]), 2)
        for _, dump in delivered.ranks:
            for name in list(dump["environment"]):
                if name.startswith(OF_THE_HOST) and name not in delivered.plan["environment"] and name not in delivered.plan["ranks"][0]["environment"]:
                    del dump["environment"][name]
                elif name in ("UCX_TLS", "LANG"):
                    del dump["environment"][name]
        self.assertEqual(delivered.differences(), [])
        return delivered

    def run_by(self, via, mpi, *before):
        number = next(self.made)
        dumps, run = f"{self.folder}/dumps-{number}", f"{self.folder}/run-{number}"
        user = self.environment(dumps, mpi)
        self.write_job(mpi, DUMP if mpi == "native" else DUMP_MPI)
        code, _, err = self.run_on(*before, DLRUN, "--quiet", "--via", via, "--framework-dir", self.folder, "--run-dir", run, "job.yaml", env=user)
        self.assertEqual(code, 0, err)
        return self.is_delivered(run, dumps, user)

    def test_by_slurm(self):
        for mpi in ("none", "pmix", "pmi1", "native"):
            with self.subTest(mpi):
                delivered = self.run_by("slurm", mpi, "salloc", "-Q", "-N2")
                for rank, dump in delivered.ranks:
                    env = dump["environment"]
                    self.assertEqual([env.get(f"SLURM_{name}") for name in ("PROCID", "LOCALID", "NODEID", "NTASKS")],
                                     [str(rank["rank"]), str(rank["local_rank"]), str(rank["node"]), "4"])

    def test_by_ssh(self):
        for mpi in ("none", "pmix", "pmi1"):
            with self.subTest(mpi):
                self.run_by("ssh", mpi, "salloc", "-Q", "-N2")

    def test_by_mpiexec(self):
        self.run_by("mpiexec", "none", "salloc", "-Q", "-N2")

    def test_both_links_of_a_chain(self):
        dumps = f"{self.folder}/dumps"
        user = self.environment(dumps, "none")
        # The first link asks for another one, which finds the marker that it leaves.
        self.write("link.sh", f"#!/bin/sh\n{DUMP} \"$@\" || exit\n[ -e again-$DLRUN_RANK ] && exit 0\n"
                   f"mv {dumps}/$DLRUN_RANK-1.json {dumps}/first-$DLRUN_RANK; touch again-$DLRUN_RANK; exit 75\n")
        self.write_job("none", "./link.sh", "checkpoint: {dir: ckpt}\n")
        code, out, err = self.run_on(DLRUN, "submit", "--json", "--chain", "3", "--framework-dir", self.folder, "job.yaml", env=user)
        self.assertEqual(code, 0, err)
        chain = json.loads(out)["chain"]
        status = self.wait_over(chain)
        self.assertEqual(len(status["links"]), 2, status)
        runs = sorted(str(path.parent) for path in pathlib.Path(self.folder).glob("**/plan.json"))
        self.assertEqual(len(runs), 2, runs)
        for run, prefix in zip(runs, ("first-{}", "{}-1.json")):
            folder = f"{self.folder}/of-{os.path.basename(run)}"
            os.makedirs(folder)
            for rank in range(4):
                os.rename(f"{dumps}/{prefix.format(rank)}", f"{folder}/{rank}-1.json")
            told = delivery.Delivery(f"{run}/plan.json", folder, {}, run=run)
            for rank, dump in told.ranks:
                self.assertEqual(dump["argv"][1:], rank["argv"][1:])
                for name, value in {**told.plan["environment"], **rank["environment"]}.items():
                    self.assertEqual(dump["environment"].get(name), value, name)
                for name, value in rank["defaults"].items():
                    expected = "prolog" if name == "D_PROLOG" else user.get(name, value)
                    self.assertEqual(dump["environment"].get(name), expected, name)

    def is_queued(self, name):
        return bool(self.run_on("squeue", "-h", "-t", "PENDING,RUNNING,COMPLETING", "-n", name)[1])


if __name__ == "__main__":
    support.main()
