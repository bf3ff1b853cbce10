#!/usr/bin/env python3
"""Nodes that are reached by ssh: agents get there past login shells that talk, hosts prove themselves, and whoever cannot be
reached is named with the reason."""
import contextlib
import os
import pathlib
import signal
import subprocess

import support
from cluster import wait_until
from configuration import HOME, UID
from namespaces import ROOM
from support import DLRUN, IN_SHELL, MPI

HELLO = ("sh", "-c", "echo $(hostname) $DLRUN_RANK")


@contextlib.contextmanager
def changed(path, text, mode=0o600):
    """The user's file `path` has another text for a while; None: it is not there."""
    path = pathlib.Path(path)
    before = path.read_text() if path.exists() else None

    def put(content):
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(content)
            path.chmod(mode)
            os.chown(path, UID, UID)
    put(text)
    try:
        yield
    finally:
        put(before)


class Ssh(support.Case):
    max_startups = "2:50:3"  # one run asks a host once, unless it goes by many names

    def dlrun(self, *words, hosts="n1,n2,n3,n4", command=HELLO, framework="plain", env=None):
        return self.run_on(DLRUN, "--quiet", "--via", "ssh", "--hosts", hosts, *words, "--framework", framework, "--", *command, env=env)

    def runs_everywhere(self, *words, **options):
        code, out, err = self.dlrun(*words, **options)
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"[worker {i} n{i + 1}] n{i + 1} {i}" for i in range(4)])
        return err

    def refused(self, *words, code=69, **options):
        got, out, err = self.dlrun(*words, **options)
        self.assertEqual((got, out), (code, ""), err)
        return err

    # Ways.

    def test_ranks_run_on_every_node(self):
        self.runs_everywhere()

    def test_ssh_is_the_way_where_no_scheduler_has_its_own(self):
        self.write("hostfile", "n1\nn2\n")
        code, out, err = self.run_on(DLRUN, "--quiet", "--hostfile", "hostfile", "--framework", "plain", "--", *HELLO)
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["[worker 0 n1] n1 0", "[worker 1 n2] n2 1"])

    def test_an_open_mpi_world_over_all_nodes(self):
        code, out, err = self.dlrun("--tasks-per-node", "2", framework="mpi", command=(MPI + "openmpi",))
        self.assertEqual(code, 0, err)
        for rank in range(8):
            self.assertIn(f"rank {rank} of 8, sum 36, on this node 2\n", out)

    def test_an_mpich_world_over_all_nodes(self):
        """Debian's MPICH hangs in MPI_Finalize over TCP half of the time, under any launcher: that is told, with the work done."""
        process = self.start(DLRUN, "--via", "ssh", "--hosts", "n1,n2,n3,n4", "--tasks-per-node", "2", "--run-dir", "run",
                             "--set", "launch.finalize-limit=2s", "--framework", "mpi", "--", MPI + "mpich")
        out, err = process.communicate()
        for rank in range(8):
            self.assertIn(f"rank {rank} of 8, sum 36, on this node 2\n", out)
        self.assertIn(process.returncode, (0, 71), err)
        if process.returncode:
            self.assertIn("hung inside MPI_Finalize", err)

    def test_the_jobs_environment_counts_on_every_node(self):
        code, out, err = self.dlrun(command=("sh", "-c", "echo $MINE"), env={"MINE": "a b"})
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"[worker {i} n{i + 1}] a b" for i in range(4)])

    def test_output_of_some_size_comes_whole(self):
        code, out, err = self.dlrun("--tasks-per-node", "2", command=("seq", "1", "20000"))
        self.assertEqual(code, 0, err)
        self.assertEqual(len(out.splitlines()), 8 * 20000)

    def test_a_config_of_the_user_counts(self):
        with changed(f"{HOME}/.ssh/config", "Host a*\n  HostName n3\n  User dlruser\n"):
            code, out, err = self.dlrun(hosts="a1,a2", command=("hostname",))
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["[worker 0 a1] n3", "[worker 1 a2] n3"])

    def test_a_proxy_of_the_user_s_config_is_gone_through(self):
        with changed(f"{HOME}/.ssh/config", "Host n2\n  ProxyJump n1\nHost *\n  BatchMode yes\n  LogLevel ERROR\n"):
            self.runs_everywhere()
        address = self.cluster.addresses["n1"]
        self.assertIn(f"Accepted publickey for dlruser from {address}", self.cluster.log("sshd.n2"))

    # Login shells.

    NOISE = "echo Welcome to \"$(hostname)\"; printf '\\033[31mred\\033[0m\\a\\0 no newline'; echo complaint >&2\n"

    def test_a_talkative_shell_is_heard_and_passed_over(self):
        with changed(f"{HOME}/.bashrc", self.NOISE):
            code, out, err = self.run_on(DLRUN, "--via", "ssh", "--hosts", "n1,n2", "--framework", "plain", "--", *HELLO)
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["[worker 0 n1] n1 0", "[worker 1 n2] n2 1"])
        self.assertIn("n1: its login shell printed: Welcome to n1", err)
        self.assertIn("n2: its login shell printed: red no newline", err)
        self.assertIn("n1: complaint", err)

    def test_a_shell_that_never_comes_to_our_command(self):
        with changed(f"{HOME}/.bashrc", "echo this account is closed; exit 3\n"):
            err = self.refused(hosts="n1,n2")
        self.assertIn("2 of 2 nodes cannot be reached by ssh: n1, n2", err)
        self.assertIn("its login shell ended (exit code 3) before it reached the dlrun command\n    | this account is closed", err)

    def test_a_shell_that_floods(self):
        with changed(f"{HOME}/.bashrc", "yes nonsense\n"):
            err = self.refused(hosts="n1")
        self.assertIn("its login shell printed more than 1048576 bytes and did not reach the dlrun command", err)

    def test_other_login_shells(self):
        passwd = pathlib.Path("/etc/passwd")
        before = passwd.read_text()
        for shell in ("/bin/sh", "/bin/tcsh", "/usr/bin/zsh", "/usr/bin/fish"):
            if not os.path.exists(shell):
                continue
            with self.subTest(shell):
                passwd.write_text(before.replace(f":{HOME}:/bin/bash", f":{HOME}:{shell}"))
                try:
                    self.runs_everywhere()
                finally:
                    passwd.write_text(before)

    def test_a_dlrun_that_is_not_there(self):
        with self.without_dlrun("n2"):
            err = self.refused()
        self.assertIn("1 of 4 nodes cannot be reached by ssh: n2", err)
        self.assertIn(f"there is no {DLRUN}-agent there", err)
        self.assertIn("--stage", err)

    # Host keys and our own.

    def test_a_host_that_is_not_known(self):
        with changed(f"{HOME}/.ssh/known_hosts", ""):
            err = self.refused()
            self.assertRegex(err, r"its host key \(ssh-ed25519 SHA256:\S+\) is in no known_hosts")
            self.assertIn("launch.ssh.host-keys=accept-new", err)
            self.runs_everywhere("--set", "launch.ssh.host-keys=accept-new")
            known = pathlib.Path(f"{HOME}/.ssh/known_hosts").read_text()
            self.assertEqual(sorted(line.split()[0] for line in known.splitlines()), ["n1", "n2", "n3", "n4"])
            self.runs_everywhere()

    def test_a_host_key_that_changed(self):
        other = f"{ROOM}/ssh/other"
        if not os.path.exists(other):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
        key = " ".join(pathlib.Path(other + ".pub").read_text().split()[:2])
        with changed(f"{HOME}/.ssh/known_hosts", f"* {key}\n"):
            err = self.refused("--set", "launch.ssh.host-keys=accept-new")
        self.assertIn("4 of 4 nodes cannot be reached by ssh: n1, n2, n3, n4", err)
        self.assertIn("its host key is not the one in known_hosts; it shows ssh-ed25519 SHA256:", err)

    def test_no_key(self):
        with changed(f"{HOME}/.ssh/id_ed25519", None):
            err = self.refused(hosts="n1")
        self.assertIn("there is no key for the login as dlruser, and no ssh agent with one that it accepts", err)

    def test_a_key_that_is_refused(self):
        other = f"{ROOM}/ssh/stranger"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
        with changed(f"{HOME}/.ssh/id_ed25519", pathlib.Path(other).read_text()):
            err = self.refused(hosts="n1")
        self.assertIn("it refused our keys for the user dlruser", err)

    def test_a_key_with_a_passphrase(self):
        locked = f"{ROOM}/ssh/locked"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", locked], check=True)
        with changed(f"{HOME}/.ssh/id_ed25519", pathlib.Path(locked).read_text()):
            err = self.refused(hosts="n1")
        self.assertIn(f"the key {HOME}/.ssh/id_ed25519 needs its passphrase, and no ssh agent holds it", err)

    def test_a_key_of_an_agent(self):
        """The only key is one that an ssh agent holds."""
        with changed(f"{HOME}/.ssh/id_ed25519", None):
            key = self.write("key", pathlib.Path(f"{ROOM}/ssh/id").read_text())
            os.chmod(key, 0o600)
            os.chown(key, UID, UID)
            script = self.write("with_agent.sh", f"#!/bin/sh\nssh-add -q key\n{IN_SHELL} --quiet --via ssh --hosts n1 --framework plain -- hostname\nssh-agent -k >/dev/null\n")
            code, out, err = self.run_on("ssh-agent", script)
        self.assertEqual((code, out), (0, "[worker 0] n1\n"), err)

    def test_a_certificate(self):
        """sshd knows only the authority that signed the key."""
        authority, key = f"{ROOM}/ssh/authority", f"{ROOM}/ssh/signed"
        for path in (authority, key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        subprocess.run(["ssh-keygen", "-q", "-s", authority, "-I", "test", "-n", "dlruser", key + ".pub"], check=True)
        allowed = pathlib.Path(f"{ROOM}/ssh/authorized_keys")
        before = allowed.read_text()
        allowed.write_text("cert-authority " + pathlib.Path(authority + ".pub").read_text())
        try:
            with changed(f"{HOME}/.ssh/id_ed25519", pathlib.Path(key).read_text()), \
                    changed(f"{HOME}/.ssh/id_ed25519-cert.pub", pathlib.Path(key + "-cert.pub").read_text()):
                self.runs_everywhere()
        finally:
            allowed.write_text(before)

    # Hosts that cannot be reached.

    def test_a_port_where_nobody_listens(self):
        err = self.refused("--set", "launch.ssh.port=4")
        self.assertIn("4 of 4 nodes cannot be reached by ssh: n1, n2, n3, n4", err)
        self.assertIn("port 4: Connection refused", err)

    def test_a_name_that_nobody_knows(self):
        err = self.refused(hosts="n1,nowhere")
        self.assertIn("1 of 2 nodes cannot be reached by ssh: nowhere", err)
        self.assertIn("the host name nowhere cannot be resolved here", err)

    def test_a_node_that_comes_later_than_lost_after_harms_nobody(self):
        """Its login shell takes its time, and the agents of the others wait for it."""
        with changed(f"{HOME}/.bashrc", '[ "$(hostname)" = n3 ] && sleep 8\n'):
            self.runs_everywhere("--set", "launch.lost-after=2s")

    def test_one_of_four_is_down(self):
        self.cluster.crash("n3")
        try:
            err = self.refused("--set", "launch.ssh.connect-timeout=5s")
        finally:
            self.cluster.boot("n3")
        self.assertIn("1 of 4 nodes cannot be reached by ssh: n3", err)
        self.assertRegex(err, "port 22: (Connection timed out|No route to host)")
        self.nothing_left()

    def test_one_of_four_is_frozen(self):
        self.cluster.freeze("n2")
        try:
            err = self.refused("--set", "launch.ssh.connect-timeout=5s")
        finally:
            self.cluster.thaw("n2")
        self.assertIn("1 of 4 nodes cannot be reached by ssh: n2", err)
        self.assertIn("it accepts connections, but its ssh server sent nothing within 5.0s", err)

    def test_ctrl_c_during_the_login(self):
        self.cluster.freeze("n2")
        try:
            process = self.start(DLRUN, "--via", "ssh", "--hosts", "n1,n2", "--framework", "plain", "--", "sleep", "1000")
            wait_until(lambda: any("dlrun-agent" in words or words.startswith(f"{DLRUN}-agent") for _, words in self.cluster.processes("n1").values()))
            head = [pid for pid, (_, words) in self.cluster.processes("head").items() if words.startswith(DLRUN)]
            os.kill(head[0], signal.SIGINT)
            _, err = process.communicate()
        finally:
            self.cluster.thaw("n2")
        self.assertEqual(process.returncode, 130, err)
        self.nothing_left()

    # Servers with too many callers.

    def test_a_server_that_takes_few_callers_at_once(self):
        names = [f"a{i}" for i in range(16)]
        with changed(f"{HOME}/.ssh/config", "Host a*\n  HostName n1\n"):
            code, out, err = self.dlrun(hosts=",".join(names), command=("hostname",))
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), sorted(f"[worker {i} a{i}] n1" for i in range(16)))
        dropped = self.cluster.log("sshd.n1").count("MaxStartups")
        self.assertGreater(dropped, 0, "the server took all at once: nothing was tested")


if __name__ == "__main__":
    support.main()
