#!/bin/sh
# deb_in_root.sh: inside a root of another suite, as root: installs the package, runs it as a user without rights, purges it; no
# file is left.
set -eu
fail() { echo "$1" && exit 1; }
find / -xdev -path /var/lib/dpkg -prune -o -path /var/log -prune -o -path /var/cache -prune -o -path /tmp -prune -o -print | sort >/tmp/before
dpkg --install /share/dlrun.deb >/tmp/log 2>&1 || fail "dpkg --install: $(cat /tmp/log)"
mkdir /tmp/user && cp /share/small.yaml /tmp/user/job.yaml && chown -R 1000:1000 /tmp/user && cd /tmp/user
setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/tmp/user \
  dlrun --run-dir run job.yaml >/tmp/log 2>&1 || fail "the training failed: $(cat /tmp/log)"
grep -q '^dlrun: done' /tmp/log || fail "the training did not end: $(cat /tmp/log)"
[ -e /usr/share/man/man1/dlrun.1 ] || [ -e /usr/share/man/man1/dlrun.1.gz ] || fail "there is no man page"
cd /
dpkg --purge dlrun >/tmp/log 2>&1 || fail "dpkg --purge: $(cat /tmp/log)"
find / -xdev -path /var/lib/dpkg -prune -o -path /var/log -prune -o -path /var/cache -prune -o -path /tmp -prune -o -print | sort >/tmp/after
cmp -s /tmp/before /tmp/after || fail "left behind: $(diff /tmp/before /tmp/after)"
echo "package installed, a training of 2 ranks, purged without a trace"
