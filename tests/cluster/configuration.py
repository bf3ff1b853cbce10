"""The files of a cluster's daemons: sshd, munge and Slurm, and its users. Values that look odd are what make Slurm notice a
dead node in seconds and start a requeued job at once (its defaults are minutes)."""
import os
import pathlib
import secrets
import shutil
import subprocess

from namespaces import ROOM

USER, UID = "dlruser", 2000
HOME = f"{ROOM}/home/{USER}"
GPUS = 8  # a host, where Slurm is asked for them: devices that read as empty, under NVIDIA's names

SSHD = f"""Port 22
HostKey {ROOM}/ssh/host_key
PidFile /run/sshd.pid
AuthorizedKeysFile {ROOM}/ssh/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
UseDNS no
MaxStartups {{max_startups}}
MaxSessions 100
Subsystem sftp internal-sftp
SetEnv UCX_TLS=tcp,self
"""

SLURM = f"""ClusterName=dlruntest
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5
SlurmctldPort=6817
SlurmdPort=6818
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation={ROOM}/state
SlurmdSpoolDir={ROOM}/spool/%n
SlurmctldLogFile={ROOM}/log/slurmctld.log
SlurmdLogFile={ROOM}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu
JobRequeue=1
KillWait=6
UnkillableStepTimeout=10
OverTimeLimit=0
MinJobAge=600
InactiveLimit=0
MessageTimeout=5
BatchStartTimeout=10
CompleteWait=0
SlurmctldTimeout=10
SlurmdTimeout=10
TCPTimeout=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,bf_continue
TreeWidth=50
TopologyPlugin=topology/none
MaxArraySize=1001
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={ROOM}/log/jobcomp.txt
NodeName=DEFAULT Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000 Gres=gpu:{GPUS} State=UNKNOWN
NodeName={{nodes}}
PartitionName=DEFAULT MaxTime=INFINITE DefaultTime=10:00 State=UP OverSubscribe=NO
PartitionName=main Nodes=ALL Default=YES
PartitionName=short Nodes=ALL MaxTime=2:00 DefaultTime=1:00
"""


def write(path, text, mode=0o644, owner=0):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    os.chown(path, owner, owner)


def cover(path, text, mode=0o644):
    """Shows `text` as the system's file `path`, inside our mount namespace only."""
    mine = f"{ROOM}/cover{path}"
    write(mine, text, mode)
    if not os.path.exists(path):
        return  # a system without it has no use for it
    subprocess.run(["mount", "--bind", mine, path], check=True)


def without(path, name, number=None):
    """The lines of a user database but those of our name or number: the first entry of a name wins, and the machine may have one."""
    def is_ours(line):
        fields = line.split(":")
        return fields[0] == name or number is not None and fields[2:3] == [str(number)]
    return "".join(line + "\n" for line in pathlib.Path(path).read_text().splitlines() if not is_ours(line))


def add_user():
    """The user that jobs run as. Its password is '*': a locked account ('!') is refused by an sshd without PAM."""
    cover("/etc/passwd", without("/etc/passwd", USER, UID) + f"{USER}:x:{UID}:{UID}::{HOME}:/bin/bash\n")
    cover("/etc/group", without("/etc/group", USER, UID) + f"{USER}:x:{UID}:\n")
    cover("/etc/shadow", without("/etc/shadow", USER) + f"{USER}:*:19000:0:99999:7:::\n", 0o640)
    os.makedirs(HOME)
    os.chown(HOME, UID, UID)


def write_ssh(max_startups):
    os.makedirs(f"{ROOM}/ssh")
    for name in ("host_key", "id"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{ROOM}/ssh/{name}"], check=True)
    shutil.copy(f"{ROOM}/ssh/id.pub", f"{ROOM}/ssh/authorized_keys")
    write(f"{ROOM}/etc/sshd_config", SSHD.format(max_startups=max_startups))
    key = pathlib.Path(f"{ROOM}/ssh/id").read_text()
    host_key = pathlib.Path(f"{ROOM}/ssh/host_key.pub").read_text().split()
    for home, owner in ((HOME, UID), (f"{ROOM}/home/root", 0)):
        write(f"{home}/.ssh/id_ed25519", key, 0o600, owner)
        write(f"{home}/.ssh/known_hosts", f"* {host_key[0]} {host_key[1]}\n", 0o600, owner)
        write(f"{home}/.ssh/config", "Host *\n  BatchMode yes\n  LogLevel ERROR\n", 0o600, owner)
        os.chown(f"{home}/.ssh", owner, owner)
        os.chmod(f"{home}/.ssh", 0o700)


def write_slurm(nodes):
    for folder in ("munge", "state", "spool", "run", "log", "dev"):
        os.makedirs(f"{ROOM}/{folder}", exist_ok=True)
    for node in nodes:
        os.makedirs(f"{ROOM}/spool/{node}")
    for gpu in range(GPUS):  # Slurm hands out only what is a device
        os.mknod(f"{ROOM}/dev/nvidia{gpu}", 0o20666, os.makedev(1, 3))
    path = pathlib.Path(f"{ROOM}/etc/munge.key")
    path.write_bytes(secrets.token_bytes(128))
    path.chmod(0o400)
    folder = f"{ROOM}/etc/slurm"
    write(f"{folder}/slurm.conf", SLURM.format(nodes=",".join(nodes)))
    write(f"{folder}/gres.conf", f"AutoDetect=off\nName=gpu File={ROOM}/dev/nvidia[0-{GPUS - 1}]\n")
    write(f"{folder}/cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    write(f"{folder}/plugstack.conf", "")
    os.makedirs("/etc/slurm", exist_ok=True)
    subprocess.run(["mount", "--bind", folder, "/etc/slurm"], check=True)


def write_hosts(addresses):
    lines = ["127.0.0.1 localhost"] + [f"{address} {name}" for name, address in addresses.items()]
    cover("/etc/hosts", "\n".join(lines) + "\n")
