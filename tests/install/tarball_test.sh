#!/usr/bin/env bash
# tarball_test.sh [--quick] [FOLDER | ARCHIVE]: makes the tarball (share/packaging/tarball.sh; or ARCHIVE is one that was made, with
# the Debian package beside it) and uses it in bare roots of three Debian suites, as a user without rights, from a folder with a blank in its name: no root, no package of ours, nothing of this system.
# With each suite's own Open MPI and MPICH it starts MPI programs and trains, with its HDF5 it reads its files; by ssh it runs on hosts of two suites at once. The
# Debian package is installed, run and purged. Prints what ran, suite by suite. Needs root, for the roots. --quick: an
# unoptimized build, and bare Debian 11 alone.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=$tree/share/packaging/suite.sh
suites=(bullseye bookworm trixie) uses=(bare openmpi mpich mpich-abi hdf5) pairs=('bullseye trixie' 'trixie bookworm' 'bookworm bullseye')
if [[ ${1:-} == --quick ]]; then suites=(bullseye) uses=(bare) pairs=(); fi
megabytes=60

fail() { echo "tarball: $1" >&2 && exit 1; }

case ${1:-} in
  *.tar.xz) archive=$(realpath "$1") ;;
  *) archive=$("$tree/share/packaging/tarball.sh" "$@" | tail -1) ;;
esac
share=$(mktemp -d)
trap 'rm -rf "$share"' EXIT
chmod 755 "$share"
cp "$archive" "$share/dlrun.tar.xz"
"$tree/tests/install/small_mnist.py" /usr/share/datasets/fashion-mnist "$share/data"
PATH=/usr/bin:$PATH "$tree/tests/install/small_hdf5.py" "$share/rows.h5"
cp "${archive%/*}"/dlrun-*.deb "$share/dlrun.deb"
cp "$tree/share/examples/mpi-hello.c" "$tree/tests/install/"{small,hdf5}.yaml "$tree/tests/install/"{tarball_in_root,tarball_by_ssh,deb_in_root}.sh "$share"
mkdir "$share/ssh"
for key in id host_key; do ssh-keygen -q -t ed25519 -N '' -f "$share/ssh/$key"; done
cat >"$share/ssh/sshd_config" <<END
HostKey /share/ssh/host_key
AuthorizedKeysFile /share/ssh/id.pub
StrictModes no
UsePAM no
PasswordAuthentication no
UseDNS no
END
export SUITE_SHARE=$share

size=$(stat --format %s "$archive")
((size <= megabytes * 1000 * 1000)) || fail "$size bytes are more than $megabytes MB"
mkdir "$share/unpacked"
tar --extract --file "$archive" --directory "$share/unpacked"
"$tree/tests/install/needs_of.py" "$share/unpacked" || fail "the tarball needs what not every system has"
rm -rf "$share/unpacked"
echo "size: $((size / 1000)) kB"

for name in "${suites[@]}"; do
  for use in "${uses[@]}"; do
    if [[ $use == bare ]]; then root=bare; else root=node; fi
    said=$("$suite" run "$name" "$root" sh /share/tarball_in_root.sh "$use") || fail "$name, $use: $said"
    echo "$name, $use: $(tail -1 <<<"$said")"
  done
  said=$("$suite" run "$name" bare sh /share/deb_in_root.sh) || fail "$name, package: $said"
  echo "$name: $(tail -1 <<<"$said")"
done
for pair in "${pairs[@]}"; do
  read -r first second <<<"$pair"
  said=$("$tree/tests/install/two_nodes.sh" "$first" "$second") || fail "$first to $second: $said"
  echo "$first to $second: $(tail -1 <<<"$said")"
done
if [[ ${uses[*]} != bare ]]; then
  "$tree/tests/install/image_test.sh" "$archive"
  "$tree/tests/install/apptainer_test.sh" "$archive"
fi
