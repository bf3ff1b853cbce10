#!/bin/sh
# carry.sh DIR [BUILD [train|bench|tests]]: copies what was built into DIR so that it runs on a machine with another Linux: bin, lib and
# share/dlrun without links, stripped, and beside them in libs/ the shared libraries that such a machine may lack. The programs
# find these by a run path of their own (patchelf), so that ranks do not inherit it. With `train` the training runtime, too, which
# is nine tenths of it; with `bench` also what tests/bench/gpu_* run; with `tests` also the tests and benchmarks themselves. Then, there:
# DLRUN_BIN=DIR/bin tests/gpu/frameworks_test.py, or tests/bench/gpu_scaling --build DIR, or DIR/tests/gpu/all.py
set -eu
[ $# -ge 1 ] || { echo "usage: $0 DIR [BUILD [train|bench|tests]]" >&2; exit 64; }
here=$(cd "$(dirname "$0")/../.." && pwd)
build=${2:-$here/build/release}
command -v patchelf >/dev/null || { echo "$0: error: patchelf is not installed: apt-get install patchelf" >&2; exit 69; }
rm -rf "$1"
mkdir -p "$1/bin" "$1/libs"
out=$(cd "$1" && pwd)
cp "$build/bin/dlrun" "$build/bin/dlrun-agent" "$out/bin/"
cp -rL "$build/lib" "$out/"
case ${3:-} in
  train) cp "$build/bin/dlrun-train" "$out/bin/" ;;
  tests)
    for program in dlrun-train dlrun-gpu-bench dlrun-engine-bench test-cuda test-products transformer-values; do
      cp "$(find "$build" -name "$program" -type f | head -n 1)" "$out/bin/"
    done
    mkdir -p "$out/tests"
    cp -r "$here/tests/gpu" "$here/tests/bench" "$out/tests/"
    ;;
  bench) cp "$build/bin/dlrun-train" "$build/bin/dlrun-gpu-bench" "$build/bin/dlrun-engine-bench" "$out/bin/" ;;
  '') rm -f "$out"/lib/dlrun/libdlrun-cuda* "$out"/lib/dlrun/libdlrun-mpi-* ;;
  *) echo "$0: error: unknown argument '$3'; expected train, bench or tests" >&2; exit 64 ;;
esac
mkdir -p "$out/share"
cp -rL "$build/share/dlrun" "$out/share/"

# What every Linux with a GPU has in its own version, or has to have: libc and its parts, the compiler's, CUDA's, MPI's.
left_out='^(ld-linux|libc|libm|libdl|libpthread|librt|libresolv|libutil|libgcc_s|libstdc\+\+|libcuda|libcudart|libcudnn|libcublas|libnccl|libnvidia|libmpi|libmpich|libopen-|libuc|libOpenCL|libudev)'
programs=$(find "$out/bin" "$out/lib" -type f \( -perm -u+x -o -name '*.so*' \))
for program in $programs; do
  ldd "$program" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }'
done | sort -u | while read -r name path; do
  echo "$name" | grep -Eq "$left_out" || cp -L "$path" "$out/libs/$name"
done

for program in $programs "$out"/libs/*; do
  strip --strip-unneeded "$program" 2>/dev/null || continue
  up=$(dirname "$program" | sed "s|^$out||; s|/[^/]*|../|g")
  patchelf --force-rpath --set-rpath "\$ORIGIN/${up}libs" "$program" 2>/dev/null || true
done
du -sh "$out"
