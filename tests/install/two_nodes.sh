#!/usr/bin/env bash
# two_nodes.sh SUITE SUITE: two hosts in network namespaces of their own, `first` and `second`, each with an sshd in a root of its
# suite. dlrun is unpacked on the first alone, and starts ranks on both (tarball_by_ssh.sh). SUITE_SHARE is what both see
# as /share. Root only; no process outlives it.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=$tree/share/packaging/suite.sh
if [[ -z ${TWO_NODES_INSIDE:-} ]]; then
  for name in "$@"; do "$suite" root "$name" node >/dev/null; done
  export TWO_NODES_INSIDE=1
  exec unshare --net --uts --mount --pid --fork --kill-child --mount-proc --propagation private bash "$0" "$@"
fi

rm -rf "$SUITE_SHARE/shared" "$SUITE_SHARE/second.up"
mkdir --mode=777 "$SUITE_SHARE/shared"
printf '127.0.0.1 localhost\n10.99.0.1 first\n10.99.0.2 second\n' >"$SUITE_SHARE/hosts"
mount --bind "$SUITE_SHARE/hosts" /etc/hosts # which is also that of the roots
hostname first
ip link set lo up

# shellcheck disable=SC2016 # for the shell in the namespaces
unshare --net --uts bash -c '
  hostname second
  ip link set lo up
  touch "$SUITE_SHARE/second.up"
  until ip link set eth0 up 2>/dev/null; do sleep 0.02; done
  ip address add 10.99.0.2/24 dev eth0
  exec "$@"' bash "$suite" run "$2" node sh /share/tarball_by_ssh.sh second >"$SUITE_SHARE/second.log" 2>&1 &
second=$!
until [[ -e $SUITE_SHARE/second.up ]]; do sleep 0.02; done
ip link add eth0 type veth peer name eth0 netns "$second"
ip address add 10.99.0.1/24 dev eth0
ip link set eth0 up
until (: </dev/tcp/second/22) 2>/dev/null; do
  kill -0 "$second" 2>/dev/null || { cat "$SUITE_SHARE/second.log" && exit 1; }
  sleep 0.05
done
if ! "$suite" run "$1" node sh /share/tarball_by_ssh.sh first; then
  cat "$SUITE_SHARE/second.log"
  exit 1
fi
