"""The support of tests on a Grid Engine: a cluster that has one, and jobs that qsub submits."""
import gridengine
import support
from cluster import wait_until


class Case(support.Case):
    nodes = 4

    @classmethod
    def setUpClass(cls):
        gridengine.lay_over()
        super().setUpClass()
        gridengine.Engine(cls.cluster).up()

    def start(self, *words, host="head", env=None, **options):
        return super().start(*words, host=host, env={**gridengine.ENVIRONMENT, **(env or {})}, **options)

    def qsub(self, text, *flags, name="job"):
        """The job's id; what it prints comes to NAME.out."""
        script = self.write(f"{name}.sh", f"#!/bin/bash\ncd {self.folder}\n{text}\n")
        code, out, err = self.run_on("qsub", "-terse", "-N", name, "-j", "y", "-o", f"{self.folder}/{name}.out", *flags, script)
        self.assertEqual(code, 0, err)
        return out.strip().split(".")[0]

    def wait_gone(self, job):
        self.assertTrue(job)
        wait_until(lambda: "do not exist" in self.run_on("qstat", "-j", job)[2], 0.1)

    def do(self, text, *flags):
        self.wait_gone(self.qsub(text, *flags))
