#!/bin/sh
# tarball_by_ssh.sh HOST: inside a root of another suite, on one of the hosts of two_nodes.sh. On both it is an sshd for one user.
# On the first, that user unpacks the tarball and runs jobs on both hosts from a folder that they share; the second gets dlrun by
# --stage.
set -eu

fail() { echo "$1" && exit 1; }

if [ "$(id -u)" = 0 ]; then
  echo 'user:x:1000:1000::/home/user:/bin/bash' >>/etc/passwd
  echo 'user:x:1000:' >>/etc/group
  echo 'user:*:19000:0:99999:7:::' >>/etc/shadow
  mkdir -p /run/sshd /home/user/.ssh
  cp /share/ssh/id /home/user/.ssh/id_ed25519
  echo "* $(cut -d' ' -f1,2 /share/ssh/host_key.pub)" >/home/user/.ssh/known_hosts
  chown -R 1000:1000 /home/user
  chmod -R go= /home/user/.ssh
  if [ "$1" = second ]; then exec /usr/sbin/sshd -D -e -f /share/ssh/sshd_config; fi
  /usr/sbin/sshd -E /tmp/sshd.log -f /share/ssh/sshd_config
  exec setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/user USER=user sh "$0" "$@"
fi
cd /home/user
tar xf /share/dlrun.tar.xz
PATH="$(echo "$PWD"/dlrun-*/bin):$PATH"
cd /share/shared

# shellcheck disable=SC2016 # for the shells of the ranks
dlrun --hosts first,second --via ssh --stage --run-dir run-plain --framework plain -- \
  sh -c '. /etc/os-release && echo "on $(hostname): $VERSION_CODENAME"' >plain.log 2>&1 || fail "a plain job failed: $(cat plain.log)"
for host in first second; do
  grep -q "on $host: " plain.log || fail "$host was not heard: $(cat plain.log)"
done

cp /share/small.yaml job.yaml
# The ranks connect themselves: the MPIs of two suites are not of one version.
dlrun --hosts first,second --via ssh --stage --run-dir run-train --set resources.tasks-per-node=1 \
  --set environment.set.DLRUN_COMM=pmi job.yaml >train.log 2>&1 || fail "the training failed: $(cat train.log)"
grep -q '"host": *"second"' run-train/record.json || fail "no rank ran on the second host: $(cat run-train/record.json)"
echo "agents by ssh, dlrun copied to the second host, a training of 2 ranks over TCP"
