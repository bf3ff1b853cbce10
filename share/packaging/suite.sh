#!/usr/bin/env bash
# suite.sh: a bare root of another Debian suite, and commands in it, with nothing of this system changed. Root only.
#
#   suite.sh root SUITE KIND           makes build/suites/SUITE-KIND unless it is there, and prints its path
#   suite.sh run SUITE KIND COMMAND... runs a command there: this tree is /source, $SUITE_SHARE (if set) is /share; what it
#                                      writes elsewhere is gone afterwards
#   suite.sh enter SUITE KIND COMMAND... the same, and what it writes stays in the root
#   suite.sh test SUITE [CTEST-ARG...] builds the whole tree with that suite's toolchain in /var/tmp of the root of kind
#                                      `build`, and runs its unit, golden, e2e and mpi tests
#
# A KIND is a list of packages: bare (Debian's essential ones, and xz), node (as on the node of a cluster: HDF5, Open MPI and MPICH with a
# C compiler, an sshd), lmod, apptainer (these programs), build (what building and testing this tree needs).
# Packages come from the archive of this system's apt (archive.sh). SUITE_JOBS compilers and tests run at once (2);
# SUITE_OPTIMIZE is for the compilers (-O1).
# DLRUN_SUITES is another folder for the roots. No process outlives its command.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
roots=${DLRUN_SUITES:-$tree/build/suites}

fail() { echo "suite: error: $1" >&2 && exit 1; }

packages_of() {
  case $1 in
    bare) echo xz-utils ;;
    node) echo xz-utils openmpi-bin libopenmpi-dev mpich libmpich-dev gcc libc6-dev openssh-server hdf5-tools ;;
    lmod | apptainer) echo "xz-utils $1" ;;
    build) "$tree/share/setup.sh" --list build && "$tree/share/setup.sh" --list suite ;;
    *) fail "unknown kind '$1': bare, node, lmod, apptainer, build" ;;
  esac
}

# A root that was made with another list of packages is made again.
make_root() {
  local suite=$1 kind=$2 root=$roots/$1-$2 wanted
  wanted=$(packages_of "$kind" | xargs | tr ' ' ,)
  if is_made; then return; fi
  mkdir -p "$roots"
  (flock 9 && if ! is_made; then install_root; fi) 9>"$root.lock"
}

is_made() { [[ -d $root && $wanted == "$(cat "$root/.packages" 2>/dev/null)" ]]; }

install_root() {
  local from
  from=$("$tree/share/packaging/archive.sh")
  rm -rf "$root.new"
  mmdebstrap --quiet --mode=root --variant=minbase --components=main ${wanted:+--include="$wanted"} \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Retries "3"' --aptopt='Acquire::Languages "none"' \
    --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io \
    --keyring=/usr/share/keyrings "$suite" "$root.new" \
    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from $suite main" >&2 ||
    fail "no root of $suite could be made (the messages are above)"
  mkdir -p "$root.new/source" "$root.new/share"
  echo "$wanted" >"$root.new/.packages"
  rm -rf --one-file-system "$root"
  mv -T "$root.new" "$root"
}

# run_in kept|fresh ROOT COMMAND...: mounts and processes of its own, so no process outlives it. What it writes is kept in the
# root, or lies over it in memory and is gone afterwards.
run_in() {
  # shellcheck disable=SC2016 # for the shell in the namespaces
  unshare --mount --pid --ipc --fork --kill-child --propagation private bash -c '
    set -euo pipefail
    how=$1 root=$2 tree=$3 share=$4
    shift 4
    if [[ $how == kept ]]; then
      mount --bind "$root" "$root"
    else
      memory=$(dirname "$root")/.fresh  # mounted in this namespace alone
      mkdir -p "$memory"
      mount -t tmpfs tmpfs "$memory"
      mkdir "$memory/upper" "$memory/work" "$memory/root"
      mount -t overlay -o "lowerdir=$root,upperdir=$memory/upper,workdir=$memory/work" overlay "$memory/root"
      root=$memory/root
    fi
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount --bind "$tree" "$root/source"
    if [[ -n $share ]]; then mount --bind "$share" "$root/share"; fi
    for file in hosts resolv.conf hostname; do
      if [[ -e /etc/$file ]]; then touch "$root/etc/$file" && mount --bind "/etc/$file" "$root/etc/$file"; fi
    done
    pivot_root "$root" "$root/mnt"  # in a chroot, Apptainer refuses to run
    cd /
    umount --lazy /mnt
    exec /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      LC_ALL=C.UTF-8 SUITE_JOBS="${SUITE_JOBS:-2}" SUITE_OPTIMIZE="${SUITE_OPTIMIZE:--O1}" "$@"' bash "$1" "$2" "$tree" "${SUITE_SHARE:-}" "${@:3}"
}

[[ $EUID == 0 ]] || fail "chroot and mount need root"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is not here: share/setup.sh --test installs it"
case ${1:-} in
  root)
    (($# == 3)) || fail "usage: suite.sh root SUITE KIND"
    make_root "$2" "$3"
    echo "$roots/$2-$3"
    ;;
  run)
    (($# > 3)) || fail "usage: suite.sh run SUITE KIND COMMAND..."
    make_root "$2" "$3"
    run_in fresh "$roots/$2-$3" "${@:4}"
    ;;
  enter)
    (($# > 3)) || fail "usage: suite.sh enter SUITE KIND COMMAND..."
    make_root "$2" "$3"
    run_in kept "$roots/$2-$3" "${@:4}"
    ;;
  test)
    (($# > 1)) || fail "usage: suite.sh test SUITE [CTEST-ARGUMENT...]"
    make_root "$2" build
    run_in kept "$roots/$2-build" /source/share/packaging/suite_build.sh "${@:3}"
    ;;
  *) fail "usage: suite.sh root|run|enter|test SUITE ..." ;;
esac
