#!/usr/bin/env bash
# quickstart.sh [DLRUN-FLAG...]: installs what building needs, builds, and trains a network on Fashion-MNIST with two ranks
# on this machine. Ends with the accuracy and the run directory. Run again, it builds what changed and finds the training
# finished; `rm -r ckpt` in the project's folder starts it afresh.
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
run_quietly cmake --preset release -D BUILD_TESTING=OFF
export NINJA_STATUS='building [%f/%t] %es  '
if [[ -t 1 ]]; then
  cmake --build --preset release
else
  echo 'building (a few minutes the first time)'
  run_quietly cmake --build --preset release
fi

quoted="'${root//\'/\'\'}/ckpt/quickstart'" # the value is YAML, whatever the folder is called
exec build/release/bin/dlrun "$@" --set "checkpoint.dir=$quoted" share/examples/fashion-mnist.yaml
