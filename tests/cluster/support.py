"""What the tests on a cluster share: a cluster with the built dlrun on it, and what must hold after each test."""
import contextlib
import json
import os
import pathlib
import shlex
import sys
import unittest

import namespaces
from cluster import Cluster, wait_until
from configuration import HOME
from namespaces import ROOM

BIN = os.environ["DLRUN_BIN"]  # set by ctest
SOURCE, BUILD = os.environ["DLRUN_SOURCE"], os.environ["DLRUN_BUILD"]
DLRUN = f"{BIN}/dlrun"
IN_SHELL = shlex.quote(DLRUN)  # the same as a word of a shell's text
MPI = f"{BUILD}/tests/unit/mpi/mpi-program-"


def parent_of(pid):
    """Of a process as we see it."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # it has ended


class Case(unittest.TestCase):
    """Tests on one cluster, which is up before the first and healthy before each. Nothing of a job may be left after one."""
    nodes, slurm, max_startups = 4, False, 200

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.nodes, slurm=cls.slurm, keep=(SOURCE, BUILD), max_startups=cls.max_startups).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__()

    def setUp(self):
        self.folder = f"{HOME}/{self.id().rpartition('.')[2]}"
        self.cluster.run("head", ["mkdir", "-p", self.folder])

    def tearDown(self):
        self.nothing_left()

    def nothing_left(self):
        """No process of the user anywhere (sshd's own take a moment to follow their clients)."""
        wait_until(lambda: not self.cluster.strays())

    def start(self, *words, host="head", env=None, **options):
        """`words` on a host, in the test's own folder, which all hosts see."""
        return self.cluster.start(host, ["env", "-C", self.folder, *words], env=env, **options)

    def run_on(self, *words, host="head", env=None):
        process = self.start(*words, host=host, env=env)
        out, err = process.communicate()
        return process.returncode, out, err

    def write(self, name, text):
        path = pathlib.Path(self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def read(self, name):
        return (pathlib.Path(self.folder) / name).read_text()

    @contextlib.contextmanager
    def without_dlrun(self, *hosts):
        """Its place is empty on these hosts."""
        empty = f"{ROOM}/empty"
        os.makedirs(empty, exist_ok=True)
        for host in hosts:
            self.cluster.run(host, ["mount", "--bind", empty, os.path.dirname(DLRUN)], user="root")
        try:
            yield
        finally:
            for host in hosts:
                self.cluster.run(host, ["umount", os.path.dirname(DLRUN)], user="root")

    def copies(self, host):
        """The copies of dlrun that a host has."""
        return self.cluster.run(host, ["sh", "-c", "ls -d /tmp/dlrun-*/bin 2>/dev/null"]).stdout.split()

    def record(self, run="run"):
        return json.loads(self.read(f"{run}/record.json"))


def main():
    namespaces.enter()
    unittest.main(module=sys.modules["__main__"], verbosity=1)
