#!/usr/bin/env bash
# test.sh [--quick] [CTEST-ARGUMENT...]: installs what tests need, builds, runs every test; ctest's closing line is the
# last output and its exit code ours. `share/test.sh -L unit` runs one kind, `-R NAME` the tests of that name.
# --quick: what takes three minutes at most (unit, golden, lint, and one of each other kind), for each change; the whole
# before it is handed to others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ${1:-} == --quick ]]; then
  shift
  set -- -L '^quick$' "$@"
fi
share/setup.sh --test
export NINJA_STATUS='[%f/%t %es] '
cmake --preset release
if [[ $(ctest --preset release -N "$@" | tail -1) == 'Total Tests: 0' ]]; then
  echo "test.sh: no test is chosen by: $*" >&2
  echo "hint: ctest --preset release -N lists their names, ctest --preset release --print-labels their kinds" >&2
  exit 64
fi
cmake --build --preset release
exec ctest --preset release "$@"
