"""For benchmarks on a cluster of real daemons in namespaces (tests/cluster), which need root: brings it up and times commands
on its head."""
import pathlib
import sys
import time

import figures

sys.path.insert(0, str(figures.ROOT / "tests/cluster"))
import namespaces  # noqa: E402 pylint: disable=wrong-import-position,wrong-import-order
from cluster import Cluster  # noqa: E402 pylint: disable=wrong-import-position,wrong-import-order
from configuration import HOME, UID  # noqa: E402 pylint: disable=wrong-import-position,wrong-import-order


class Timer:
    """Commands of the user's on the cluster's head; a new run directory for each run of dlrun."""

    def __init__(self, bench, cluster):
        self.bench, self.cluster, self.runs = bench, cluster, 0

    def seconds(self, argv, is_good):
        started = time.perf_counter()
        run = self.cluster.run("head", argv)
        taken = time.perf_counter() - started
        if run.returncode or not is_good(run.stdout):
            figures.fail(f"{' '.join(argv)[:200]} ended with {run.returncode}: {run.stdout[-500:]}{run.stderr[-500:]}")
        return taken

    def dlrun(self, *words):
        self.runs += 1
        return [self.bench.dlrun, "--quiet", "--run-dir", f"{HOME}/run-{self.runs}", *words]


def cluster_for(bench, nodes, **options):
    namespaces.enter()
    build = pathlib.Path(bench.dlrun).parents[1]
    return Cluster(nodes, keep=(figures.ROOT, build), **options)
