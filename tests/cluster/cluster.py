"""A cluster of real daemons on one machine: each host is a set of namespaces with its own network address, processes, /tmp,
sshd and (on request) slurmd; `head` has slurmctld and stands for the login node. Its disks are shared, as on a cluster.

    namespaces.enter()
    with Cluster(4, slurm=True) as cluster:
        cluster.run("head", ["srun", "-N4", "hostname"])
        cluster.cut("n2")

Hosts can be cut off, frozen, crashed and booted again. Nothing of it outlives the program (namespaces.py).
"""
import glob
import inspect
import os
import pathlib
import signal
import subprocess
import time

import configuration
import namespaces
from configuration import HOME, UID, USER
from namespaces import ROOM

HERE = pathlib.Path(__file__).resolve().parent
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def command(*words, **options):
    return subprocess.run(words, check=True, text=True, capture_output=True, **options).stdout


LIMIT = 600  # seconds; what takes longer hangs, however slow the machine is


def wait_until(condition, pause=0.02, limit=LIMIT):
    """Until the condition holds; where it does not come, the error shows the line that waited for it."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            caller = inspect.stack()[1]
            raise TimeoutError(f"waited {limit} s in vain, {os.path.basename(caller.filename)}:{caller.lineno}: "
                               + " ".join((caller.code_context or ["?"])[0].split()))
        time.sleep(pause)


class Started(subprocess.Popen):
    """A program whose end is not waited for without a limit; the error of a hang shows its command."""

    def communicate(self, input=None, timeout=LIMIT):  # pylint: disable=redefined-builtin
        return super().communicate(input, timeout)

    def wait(self, timeout=LIMIT):
        return super().wait(timeout)


class Cluster:
    def __init__(self, nodes, slurm=False, keep=(), max_startups=200):
        """`nodes`: their names, or how many (n1, n2, ...). `keep`: folders that every host must see, wherever they are."""
        self.nodes = [f"n{i + 1}" for i in range(nodes)] if isinstance(nodes, int) else list(nodes)
        self.slurm, self.keep, self.max_startups = slurm, [str(folder) for folder in keep], max_startups
        self.addresses = {"head": "10.77.0.1"}
        self.addresses.update({name: f"10.77.{1 + i // 250}.{1 + i % 250}" for i, name in enumerate(self.nodes)})
        self.outer = {}  # host -> the unshare process that holds it

    # up and down

    def __enter__(self):
        assert namespaces.INSIDE in os.environ, "namespaces.enter() comes first"
        configuration.add_user()
        configuration.write_ssh(self.max_startups)
        configuration.write_hosts(self.addresses)
        for folder in ("munge", "run", "log"):
            os.makedirs(f"{ROOM}/{folder}", exist_ok=True)
        if self.slurm:
            configuration.write_slurm(self.nodes)
        os.makedirs("/run/netns", exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
        self._make_network()
        for host in self.addresses:
            self._power_on(host)
        for host in self.addresses:
            self._await(host)
        if self.slurm:
            self.wait_idle()
        return self

    def __exit__(self, *_):
        for process in self.outer.values():
            process.kill()
        for process in self.outer.values():
            process.wait()

    def _make_network(self):
        """One bridge, inside the head's network; one cable to each host."""
        for host in self.addresses:
            command("ip", "netns", "add", host)
        lines = ["link add bridge0 type bridge", f"address add {self.addresses['head']}/16 dev bridge0", "link set bridge0 up"]
        for node in self.nodes:
            lines += [f"link add v-{node} type veth peer name eth0 netns {node}", f"link set v-{node} master bridge0 up"]
        command("ip", "-n", "head", "-batch", "-", input="\n".join(lines) + "\n")

    def _power_on(self, host):
        role = "head" if host == "head" else "slurm" if self.slurm else "ssh"
        pathlib.Path(f"{ROOM}/run/{host}.ready").unlink(missing_ok=True)
        log = open(f"{ROOM}/log/init.{host}.log", "ab")  # pylint: disable=consider-using-with
        self.outer[host] = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{host}", "unshare", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child=KILL",
             "--mount-proc", "bash", HERE / "host_init.sh", host, self.addresses[host], role, *self.keep],
            env=CLEAN, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        log.close()

    def _await(self, host):
        def ready():
            if self.outer[host].poll() is not None:
                raise RuntimeError(f"host {host} did not come up:\n" + self.log(f"init.{host}"))
            return os.path.exists(f"{ROOM}/run/{host}.ready")
        wait_until(ready)

    def wait_idle(self):
        """Until Slurm would start a job on any node."""
        wait_until(lambda: set(self.run("head", ["sinfo", "-h", "-N", "-o", "%T"], user="root").stdout.split()) == {"idle"}, 0.1)

    # inside

    def _first_process(self, host):
        pid = self.outer[host].pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0])

    def words(self, host, argv, user=USER, env=None):
        """The command line that runs `argv` on `host`."""
        home = HOME if user == USER else f"{ROOM}/home/root"
        environment = {**CLEAN, "HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash", "TERM": "dumb",
                       "UCX_TLS": "tcp,self", **(env or {})}
        become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"] if user == USER else []
        return ["nsenter", "-t", str(self._first_process(host)), "--net", "--uts", "--ipc", "--mount", "--pid", "--wdns=" + home,
                *become, "env", "-i", *[f"{k}={v}" for k, v in environment.items()], *argv]

    def start(self, host, argv, user=USER, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return Started(self.words(host, argv, user, env), text=True, **options)

    def run(self, host, argv, user=USER, env=None, **options):
        process = self.start(host, argv, user, env, **options)
        out, err = process.communicate()
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def log(self, name):
        return pathlib.Path(f"{ROOM}/log/{name}.log").read_text(errors="replace")

    # failures

    def processes(self, host):
        """{pid as we see it: (uid, command line)} of everything that runs on `host`."""
        namespace = os.readlink(f"/proc/{self._first_process(host)}/ns/pid")
        found = {}
        for folder in glob.glob("/proc/[0-9]*"):
            try:
                if os.readlink(f"{folder}/ns/pid") != namespace:
                    continue
                if pathlib.Path(f"{folder}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                    continue
                words = pathlib.Path(f"{folder}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(folder[6:])] = (os.stat(folder).st_uid, words.strip())
            except OSError:
                continue  # it has ended meanwhile
        return found

    def strays(self):
        """{host: command lines} of the user's processes on all nodes; empty after the end of a job."""
        found = {host: [words for uid, words in self.processes(host).values() if uid == UID] for host in self.up()}
        return {host: words for host, words in found.items() if words}

    def up(self):
        return [host for host, process in self.outer.items() if process.poll() is None]

    def cut(self, host):
        """Cuts the network cable: packets are dropped, connections hang."""
        command("ip", "-n", "head", "link", "set", f"v-{host}", "down")

    def mend(self, host):
        command("ip", "-n", "head", "link", "set", f"v-{host}", "up")

    def freeze(self, host):
        """Stops every process; the kernel still acknowledges for its connections."""
        self._signal_all(host, signal.SIGSTOP)

    def thaw(self, host):
        self._signal_all(host, signal.SIGCONT)

    def _signal_all(self, host, number):
        for pid in self.processes(host):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def crash(self, host):
        """A power cut: no process disconnects, and all of them are gone."""
        self.cut(host)
        self.outer[host].kill()
        self.outer[host].wait()

    def boot(self, host):
        self.mend(host)
        self._power_on(host)
        self._await(host)
