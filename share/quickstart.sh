#!/usr/bin/env bash
# quickstart.sh [--cuda] [DLRUN-FLAG...]: installs what building needs, builds, and trains a network on Fashion-MNIST with
# two ranks on this machine. Ends with the accuracy and the run directory. Run again, it builds what changed and finds the
# training finished; `rm -r ckpt` in the project's folder starts it afresh.
# Its build (build/first) compiles many sources at once and no tests, so that the first run comes soon; use the release preset
# to change sources. The CUDA plug-in takes many minutes: it is built if this machine has a GPU, or with --cuda.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

share/setup.sh

# The build: a line that moves on a terminal, and only what matters elsewhere (the whole output is kept in a file).
log=build/quickstart.log
mkdir -p build
run_quietly() {
  "$@" >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    printf 'quickstart: error: this failed: %s\n  hint: its whole output is in %s\n' "$*" "$root/$log" >&2
    exit 1
  }
}
cuda=(-D DLRUN_NVCC=OFF)
if [[ ${1:-} == --cuda ]]; then
  shift
  cuda=(-U DLRUN_NVCC)
elif [[ -d /proc/driver/nvidia/gpus ]]; then
  cuda=(-U DLRUN_NVCC)
fi
run_quietly cmake --preset first "${cuda[@]}"
export NINJA_STATUS='building [%f/%t] %es  '
if [[ -t 1 ]]; then
  cmake --build --preset first
else
  echo 'building (a few minutes the first time)'
  run_quietly cmake --build --preset first
fi

quoted="'${root//\'/\'\'}/ckpt/quickstart'" # the value is YAML, whatever the folder is called
exec build/first/bin/dlrun "$@" --set "checkpoint.dir=$quoted" share/examples/fashion-mnist.yaml
