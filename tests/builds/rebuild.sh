#!/usr/bin/env bash
# rebuild.sh PRESET TARGET: configures the tree in build/PRESET, builds TARGET there, and runs the tests that the preset
# chooses; an empty choice is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

preset=$1 target=$2
# A test must not inherit the build that it runs in.
unset CC CXX CFLAGS CXXFLAGS LDFLAGS
cmake --preset "$preset"
cmake --build --preset "$preset" --target "$target"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
# OpenMP's own threads are not instrumented and would only be reported as what they are not.
export OMP_NUM_THREADS=1
ctest --preset "$preset"
