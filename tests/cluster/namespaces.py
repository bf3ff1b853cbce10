"""Namespaces of our own for a test program: network, mounts, processes, IPC and host name.

Everything that a cluster test makes (hosts, links, users, daemons, files) lives inside them, so that nothing of it can be
left on the machine: the kernel takes it all down with the program's first process, however the program ends.
"""
import ctypes
import os
import signal
import sys

INSIDE = "DLRUN_TEST_INSIDE"
ROOM = "/mnt"  # a file system in memory: the cluster's shared folders and state

# The first process of a pid namespace must reap what others leave behind, which Python does not do by itself.
FIRST_PROCESS = 'mount -t tmpfs -o mode=755,size=4g tmpfs "$0" && { "$@" & wait $!; }'


def die_with_parent():
    """A test runner that is killed takes us along."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def enter():
    """Starts this program again inside; returns there, and does not return outside."""
    if INSIDE in os.environ:
        for number in (signal.SIGINT, signal.SIGQUIT):  # ignored in what a shell runs in the background
            signal.signal(number, signal.SIG_DFL)
        return
    if os.geteuid() != 0:
        sys.exit("cluster tests make network namespaces and start sshd and slurmd in them, which needs root; "
                 "'ctest -LE cluster' leaves them out")
    die_with_parent()
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL", "--mount-proc",
                          "bash", "-c", FIRST_PROCESS, ROOM, sys.executable, *sys.argv])
