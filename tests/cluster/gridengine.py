"""A real Grid Engine on a Cluster's hosts: sge_qmaster on the head, an sge_execd on every node, one queue of all nodes and
parallel environments whose jobs may start tasks on their nodes (qrsh -inherit).

Its packages cannot stand beside Slurm's qsub (Debian says that they conflict), so share/setup.sh --test only unpacks them,
and lay_over() shows them where they belong, inside our mount namespace. The cell is a folder in the cluster's room.
"""
import os
import pathlib
import subprocess

from cluster import wait_until
from configuration import write
from namespaces import ROOM

UNPACKED, PROGRAMS = "/opt/dlrun-tests/gridengine", "/usr/lib/gridengine"
ROOT, CELL = f"{ROOM}/gridengine", "dlrun"
COMMON, SPOOL = f"{ROOT}/{CELL}/common", f"{ROOT}/{CELL}/spool"
ENVIRONMENT = {"SGE_ROOT": ROOT, "SGE_CELL": CELL, "SGE_QMASTER_PORT": "6444", "SGE_EXECD_PORT": "6445"}

BOOTSTRAP = f"""admin_user none
default_domain none
ignore_fqdn false
spooling_method classic
spooling_lib libspoolc
spooling_params {COMMON};{SPOOL}/qmaster
binary_path {PROGRAMS}
qmaster_spool_dir {SPOOL}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
# What differs from Debian's own configuration: everything happens within a second.
GLOBAL = {"execd_spool_dir": f"{SPOOL}/execd", "load_report_time": "00:00:01", "mailer": "/bin/true",
          "max_unheard": "00:00:30"}
SCHEDULER = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
PARALLEL = "pe_name {}\nslots 999\nuser_lists NONE\nxuser_lists NONE\nstart_proc_args NONE\nstop_proc_args NONE\n" \
           "allocation_rule {}\ncontrol_slaves {}\njob_is_first_task {}\nurgency_slots min\naccounting_summary FALSE\nqsort_args NONE\n"
# Name: how slots are spread over nodes, whether jobs may start tasks there, whether the job itself counts as the first of them.
ENVIRONMENTS = {"fill": ("$fill_up", True, False), "one": ("1", True, False), "two": ("2", True, False),
                "first": ("1", True, True), "loose": ("1", False, False)}


def lay_over():
    """The unpacked packages, seen as if they were installed."""
    assert os.path.isdir(UNPACKED), f"{UNPACKED} is not there: run share/setup.sh --test"
    subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={UNPACKED}/usr:/usr", "overlay", "/usr"], check=True)


def with_values(text, values):
    """Lines "name value", some of them with other values."""
    lines = [f"{line.split()[0]} {values[line.split()[0]]}" if line.split()[:1] and line.split()[0] in values else line
             for line in text.splitlines()]
    return "\n".join(lines) + "\n"


class Engine:
    def __init__(self, cluster, slots=4):
        self.cluster, self.slots = cluster, slots

    def up(self):
        self._spool()
        self._await([self._daemon("head", "sge_qmaster")])
        wait_until(lambda: self._ask("qconf", "-sh").returncode == 0)
        hosts = ",".join(["head", *self.cluster.nodes])
        for list_of in ("-ah", "-as"):
            self._do("qconf", list_of, hosts)
        self._await([self._daemon(node, "sge_execd") for node in self.cluster.nodes])
        wait_until(lambda: set(self._ask("qconf", "-sel").stdout.split()) == set(self.cluster.nodes))
        self._configure()
        wait_until(lambda: self._with_load() == set(self.cluster.nodes))

    def _spool(self):
        for folder in (COMMON, f"{SPOOL}/qmaster", f"{SPOOL}/execd"):
            os.makedirs(folder)
        for name in ("bin", "utilbin"):
            os.makedirs(f"{ROOT}/{name}")
            os.symlink(PROGRAMS, f"{ROOT}/{name}/lx-amd64")
        os.symlink("/usr/share/gridengine/util", f"{ROOT}/util")
        write(f"{COMMON}/act_qmaster", "head\n")
        write(f"{COMMON}/bootstrap", BOOTSTRAP)
        defaults = pathlib.Path("/usr/share/gridengine/default-configuration").read_text()
        write(f"{ROOT}/global", with_values(defaults, GLOBAL))
        self._do("spoolinit", "classic", "libspoolc", f"{COMMON};{SPOOL}/qmaster", "init")
        for what, source in (("configuration", f"{ROOT}/global"), ("complexes", f"{ROOT}/util/resources/centry"),
                             ("usersets", f"{ROOT}/util/resources/usersets"), ("managers", "root")):
            self._do("spooldefaults", what, source)

    def _configure(self):
        for name, (rule, tasks, first) in ENVIRONMENTS.items():
            self._add("-Ap", PARALLEL.format(name, rule, str(tasks).upper(), str(first).upper()))
        queue = {"qname": "all.q", "hostlist": " ".join(self.cluster.nodes), "slots": self.slots, "shell": "/bin/bash",
                 "pe_list": " ".join(ENVIRONMENTS), "load_thresholds": "NONE", "shell_start_mode": "unix_behavior"}
        self._add("-Aq", with_values(self._do("qconf", "-sq"), queue))
        self._add("-Msconf", with_values(self._do("qconf", "-ssconf"), SCHEDULER))

    def _with_load(self):
        """The nodes whose sge_execd has reported."""
        fields = [line.split() for line in self._do("qhost").splitlines()[3:]]
        return {words[0] for words in fields if words[6] != "-"}

    def _add(self, option, text):
        write(f"{ROOT}/asked", text)
        self._do("qconf", option, f"{ROOT}/asked")

    # On the head, as root.

    def _ask(self, program, *words):
        return self.cluster.run("head", [f"{PROGRAMS}/{program}", *words], user="root", env=ENVIRONMENT)

    def _do(self, program, *words):
        done = self._ask(program, *words)
        assert done.returncode == 0, f"{program} {words}: {done.stdout}{done.stderr}"
        return done.stdout

    def _daemon(self, host, program):
        with open(f"{ROOM}/log/{program}.{host}.log", "wb") as log:
            return self.cluster.start(host, [f"{PROGRAMS}/{program}"], user="root", env=ENVIRONMENT, stdout=log, stderr=log)

    def _await(self, daemons):
        """They go to the background once they are up."""
        for daemon in daemons:
            assert daemon.wait() == 0, f"{daemon.args[-1]} ended with exit code {daemon.returncode}: see {ROOM}/log"
