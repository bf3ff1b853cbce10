#!/bin/sh
# tarball_in_root.sh KIND: inside a root of another suite, /share is what tarball_test.sh laid out. Unpacks the tarball
# and uses it as a user without rights; the last line says what ran. KIND: bare, hdf5, or the MPI of the root that is used:
# openmpi, mpich, or mpich-abi (the suite's MPICH under the name that it has everywhere but on Debian).
set -eu
kind=$1
libraries=/usr/lib/x86_64-linux-gnu

fail() { echo "$1" && exit 1; }

if [ "$(id -u)" = 0 ]; then
  mkdir -p /var/tmp/user
  chown 1000:1000 /var/tmp/user
  if [ "$kind" = mpich-abi ]; then
    mkdir /opt/mpich
    mv "$(readlink -f $libraries/libmpich.so.12)" /opt/mpich/libmpi.so.12
    rm $libraries/libmpich.so*
    export LD_LIBRARY_PATH=/opt/mpich
  fi
  exec setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/var/tmp/user sh "$0" "$@"
fi
cd /var/tmp/user

mpi_hello() {
  "mpicc.$kind" -o hello /share/mpi-hello.c
  dlrun --tasks-per-node 2 --run-dir run-hello --framework mpi -- ./hello >hello.log 2>&1 || fail "$(cat hello.log)"
  grep -q 'a world of 2 ranks' hello.log || fail "no world of 2: $(cat hello.log)"
  [ -s run-hello/record.json ] || fail "there is no record.json"
}

# train FLAG...: an epoch with two ranks; the time of the end of its first step is in first-step.
train() {
  cp /share/small.yaml job.yaml
  dlrun job.yaml --run-dir run-train "$@" 2>&1 | while IFS= read -r line; do
    case $line in *'first step done'*) date +%s%N >first-step ;; esac
    echo "$line"
  done >train.log
  grep -q '^dlrun: done' train.log || fail "the training failed: $(cat train.log)"
  [ -s first-step ] || fail "no first step was reported: $(cat train.log)"
}

# stage: the same data as an archive that dlrun unpacks on the node, and removes at the end.
stage() {
  tar cJf data.tar.xz -C /share/data .
  # shellcheck disable=SC2016 # for dlrun
  sed 's|/share/data|$DLRUN_STAGE/data|; s|dir: ckpt|dir: ckpt-stage|' /share/small.yaml >stage.yaml
  echo 'stage: [{from: data.tar.xz, unpack: true}]' >>stage.yaml
  dlrun stage.yaml --run-dir run-stage >stage.log 2>&1 || fail "a training on staged data failed: $(cat stage.log)"
  folder=$(sed -n 's|.*"folder": *"\([^"]*\)".*|\1|p' run-stage/plan.json)
  [ -n "$folder" ] || fail "plan.json has no folder of the staged data"
  [ ! -e "$folder" ] || fail "$folder was left behind"
}

began=$(date +%s%N)
tar xf /share/dlrun.tar.xz
mv dlrun-* 'a place with blanks'
PATH="$PWD/a place with blanks/bin:$PATH"
dlrun --version >version.log || fail "--version failed: $(cat version.log)"
has() { grep -q "^  yes  $1" version.log || fail "--version has no $1: $(cat version.log)"; }
has 'agents by ssh' && has 'native functions in dlrun stacks'

case $kind in
  openmpi)
    has 'trainer over Open MPI' && has 'PMIx service'
    mpi_hello
    train --mpi pmix
    echo "MPI hello and a training of 2 ranks over Open MPI $(ompi_info --version | sed -n 's/^Open MPI v//p')"
    ;;
  mpich)
    has 'trainer over MPICH'
    mpi_hello
    train --mpi pmi1 --set environment.set.DLRUN_COMM=mpich
    echo "MPI hello and a training of 2 ranks over MPICH $(mpichversion | sed -n 's/^MPICH Version:[[:space:]]*//p')"
    ;;
  mpich-abi)
    has 'trainer over MPICH'
    train --mpi pmi1 --set environment.set.DLRUN_COMM=mpich
    echo "a training of 2 ranks over the same MPICH as libmpi.so.12"
    ;;
  hdf5)
    has 'HDF5'
    dlrun /share/hdf5.yaml --run-dir run-hdf5 --set checkpoint.dir="$PWD/ckpt" >hdf5.log 2>&1 || fail "HDF5: $(cat hdf5.log)"
    grep -q '^dlrun: done' hdf5.log || fail "the training on HDF5 did not end: $(cat hdf5.log)"
    echo "a training of 2 ranks on an HDF5 file, by the suite's $(h5dump --version | sed 's/.*Version/HDF5/')"
    ;;
  bare)
    train
    grep -q "no MPI (.*): ranks use dlrun's own links" train.log || fail "the ranks do not connect themselves: $(cat train.log)"
    took=$((($(cat first-step) - began) / 1000000))
    stage
    grep -q '^  no   HDF5' version.log || fail "--version does not say that HDF5 is missing: $(cat version.log)"
    if dlrun /share/hdf5.yaml --run-dir run-hdf5 --set checkpoint.dir="$PWD/ckpt" >hdf5.log 2>&1; then fail "HDF5 without its library"; fi
    grep -q 'data of format hdf5 need the HDF5 library' hdf5.log || fail "HDF5 is not named: $(cat hdf5.log)"
    dlrun plan job.yaml >plan.log 2>&1 || fail "plan failed: $(cat plan.log)"
    dlrun submit --scheduler slurm --dry-run job.yaml >submit.log 2>&1 || fail "submit failed: $(cat submit.log)"
    grep -q '^#SBATCH' submit.log || fail "submit wrote no script: $(cat submit.log)"
    mv 'a place with blanks' 'another place'
    PATH="$PWD/another place/bin:$PATH"
    dlrun --run-dir run-moved --framework plain -- sh -c 'echo moved' >moved.log 2>&1 || fail "moved: $(cat moved.log)"
    grep -q moved moved.log || fail "moved: $(cat moved.log)"
    echo "--version, a training of 2 ranks without MPI ($took ms from tar x to the end of its first step), staged data, HDF5 named as missing, plan, submit --dry-run, moved"
    ;;
  *) fail "unknown kind $kind" ;;
esac
