#!/usr/bin/env bash
# suite_build.sh [CTEST-ARGUMENT...]: inside a root that suite.sh made: builds this tree with the root's own toolchain,
# every warning an error, and runs the tests of which one needs no cluster, no GPU and no network (the labels unit, golden,
# e2e, mpi; arguments choose others). -O1 (SUITE_OPTIMIZE), as much of it is built once. A second call builds what changed.
set -euo pipefail
cd /source
build=/var/tmp/build
g++ --version | head -1
dpkg-query --show --showformat='${Package} ${Version}\n' libdnnl-dev libopenmpi-dev libmpich-dev libpmix-dev libyaml-cpp-dev libfmt-dev
export CCACHE_DIR=/var/tmp/ccache
cmake -S . -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=RelWithDebInfo -D CMAKE_CXX_FLAGS_RELWITHDEBINFO="$SUITE_OPTIMIZE -DNDEBUG" \
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=24 -D DLRUN_NVCC=OFF -D BUILD_TESTING=ON
cmake --build "$build" -j "$SUITE_JOBS" -- -k 0
if (($# == 0)); then set -- -L '^(unit|golden|e2e|mpi)$'; fi
exec ctest --test-dir "$build" --output-on-failure -j "$SUITE_JOBS" "$@"
