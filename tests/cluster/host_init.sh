#!/usr/bin/env bash
# host_init.sh NAME ADDRESS ROLE [FOLDER-TO-KEEP...]: the first process of one simulated host. Gives it what a machine has of
# its own (name, address, /tmp, /run, /dev/shm, boot id), starts its daemons (ROLE: head, slurm or ssh), says that it is
# ready, and reaps orphans for ever. Killing it is a power cut: the kernel ends every process of the host.
set -eu
name=$1 address=$2 role=$3
shift 3
room=/mnt

hostname "$name"
ip link set lo up
if [[ $role != head ]]; then
  ip address replace "$address/16" dev eth0
  ip link set eth0 up
fi

# The build may lie under /tmp, which is about to be covered.
number=0
for folder in "$@"; do
  mkdir -p "/run/keep/$number"
  mount --bind "$folder" "/run/keep/$number"
  number=$((number + 1))
done
mount -t tmpfs -o mode=1777,size=1g tmpfs /tmp
number=0
for folder in "$@"; do
  mkdir -p "$folder"
  mount --move "/run/keep/$number" "$folder"
  number=$((number + 1))
done
mount -t tmpfs -o mode=1777,size=1g tmpfs /dev/shm # MPIs name their files there by pid, and pids repeat from host to host
mount -t tmpfs -o mode=755,size=64m tmpfs /run
mkdir -p /run/sshd /run/munge /run/lock
mount --bind "$room/munge" /run/munge # one munged, on the head, serves all hosts
# MPICH takes two hosts of one boot for one machine, and then tries shared memory between them.
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id

ulimit -n 4096
if [[ $role == head && -e $room/etc/slurm/slurm.conf ]]; then
  munged --force --key-file="$room/etc/munge.key" --socket=/run/munge/munge.socket.2 --pid-file=/run/munged.pid \
    --log-file="$room/log/munged.log" --seed-file="$room/munge.seed" --num-threads=4
fi
/usr/sbin/sshd -f "$room/etc/sshd_config" -E "$room/log/sshd.$name.log"
if [[ $role == head && -e $room/etc/slurm/slurm.conf ]]; then slurmctld; fi
if [[ $role == slurm ]]; then slurmd -N "$name"; fi
touch "$room/run/$name.ready"
trap 'exit 0' TERM
while :; do
  sleep 3600 &
  wait $!
done
