#!/usr/bin/env bash
# aarch64_test.sh [--quick | --tests [CTEST-ARGUMENT...]] [FOLDER]: makes the tarball for aarch64 (TARBALL_MACHINE=aarch64
# share/packaging/tarball.sh) and uses it on this machine under qemu-user: versions of its symbols, --version, plan, a training of two
# ranks. --tests builds the unit and golden tests for that processor instead, and runs them in the same way, but for the cases that are
# named below; with arguments for ctest, only what these choose, and all of its cases. Programs that are started are run by qemu as well,
# by a binfmt_misc of an own user namespace (Linux 6.7). Needs g++-aarch64-linux-gnu, mold, and a static qemu-aarch64 that knows
# PR_SET_CHILD_SUBREAPER (10.0 does, 7.2 does not): $QEMU_AARCH64, or that of qemu-user-static.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
self=$tree/tests/install/aarch64_test.sh
qemu=${QEMU_AARCH64:-/usr/bin/qemu-aarch64-static}
fail() { echo "aarch64: $1" >&2 && exit 1; }

# emulated COMMAND...: with a handler for programs of this processor.
if [[ ${1:-} == emulated ]]; then
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  printf '%s%s%s:OCF' ':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:' \
    '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:' "$qemu" \
    >/proc/sys/fs/binfmt_misc/register
  exec "${@:2}"
fi

if [[ ${1:-} == --tests ]]; then
  build=$(TARBALL_MACHINE=aarch64 "$tree/share/packaging/tarball.sh" --tests | tail -1)
  QEMU_LD_PREFIX=$(realpath "$build/../../sysroot")
  export QEMU_LD_PREFIX
  shift
  if (($# == 0)); then
    names=pytorch # hours, and nothing that is the processor's
    but_for() { # PROGRAM OPTION...: runs its cases but for those that the options leave out
      echo "test-$1 ${*:2}"
      (cd "$build/tests/unit" && unshare --user --map-root-user --mount "$self" emulated "$build/bin/test-$1" "${@:2}")
      names+="|$1"
    }
    # qemu writes /proc/self/stat itself, its vfork shares no memory, and the stack of a process is its own.
    but_for base --test-case-exclude='an owner that was killed by force*,of many that want a dead owner*'
    but_for process --test-case-exclude='a program that cannot run*'
    but_for agent --test-case-exclude='a process inside a function*'
    # The namespace has one user, who may read everything; the MPIs are in the sysroot alone, and HDF5 is not.
    but_for report --test-case-exclude='a folder that may not be read*'
    but_for mpi-flavour --test-case-exclude='a program that links*'
    but_for data --test-case-exclude='a folder that cannot be read*' --source-file-exclude='*hdf5*'
    # How oneDNN lays weights out here: share/doc/INSTALL.md
    but_for train --test-case-exclude='a rank has its share of the state*'
    set -- -L '^(unit|golden)$' -E "^($names)\$"
  fi
  exec unshare --user --map-root-user --mount "$self" emulated ctest --test-dir "$build" --output-on-failure -j "${TARBALL_JOBS:-2}" "$@"
fi
archive=$(TARBALL_MACHINE=aarch64 "$tree/share/packaging/tarball.sh" "$@" | tail -1)
sysroot=${archive%/*}/sysroot
[[ -d $sysroot ]] || sysroot=${archive%/*}/../sysroot
QEMU_LD_PREFIX=$(realpath "$sysroot")
export QEMU_LD_PREFIX
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar --extract --file "$archive" --directory "$work"
"$tree/tests/install/needs_of.py" "$work" || fail "the tarball needs what not every system has"
emulated() { unshare --user --map-root-user --mount "$self" emulated "$@"; }

"$tree/tests/install/small_mnist.py" /usr/share/datasets/fashion-mnist "$work/data" 384 64 # qemu trains 4 images per second
sed "s|/share/data|$work/data|" "$tree/tests/install/small.yaml" >"$work/job.yaml"
cd "$work"
emulated "$work"/dlrun-*/bin/dlrun --version >version.log || fail "--version failed: $(cat version.log)"
emulated "$work"/dlrun-*/bin/dlrun plan job.yaml >plan.log 2>&1 || fail "plan failed: $(cat plan.log)"
emulated "$work"/dlrun-*/bin/dlrun job.yaml --run-dir run >train.log 2>&1 || fail "the training failed: $(cat train.log)"
grep -q 'first step done' train.log || fail "no first step was reported: $(cat train.log)"
grep -q '^dlrun: done' train.log || fail "the training did not end: $(cat train.log)"
echo "aarch64: $(stat --format %s "$archive") bytes; under $("$qemu" --version | head -1): --version, plan, a training of 2 ranks"
