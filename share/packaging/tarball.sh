#!/usr/bin/env bash
# tarball.sh [--quick] [FOLDER]: makes FOLDER/dlrun-VERSION-x86_64.tar.xz (FOLDER: build/portable), one archive for every x86-64
# Linux with glibc 2.31 or newer. It needs no root and no installation: unpack it anywhere, also under a path with blanks.
# TARBALL_MACHINE=aarch64 makes it for that processor instead, with Debian's cross compiler (g++-aarch64-linux-gnu), in
# build/portable-aarch64.
#   Inside:            every library that dlrun uses, static or in lib/dlrun/beside
#   The system's own:  glibc, and libstdc++ for oneDNN (since g++ 9). A second libstdc++ inside would be the one that the site's
#                      MPI gets, and would be too old for some
#   Found at run time: Open MPI, MPICH, PMIx, libslurm, NVML; dlrun --version says which. The CUDA plug-in is not inside
# Beside it FOLDER/dlrun-VERSION.deb, the same for dpkg, below /usr.
# Baseline x86-64-v2, or ARMv8; oneDNN and our kernels choose by the processor. Built on Debian 12 with its g++ 12; a second call builds what
# changed. --quick compiles without optimization and packs fast, into FOLDER/quick: for a test of linking and packing.
# --tests builds the unit and golden tests instead, at -O1, and prints the build folder (tests/install/aarch64_test.sh runs them).
# TARBALL_JOBS compilers run at once (2).
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
optimize="-O2 -DNDEBUG" place=. pack=-6 tests=OFF
case ${1:-} in
  --quick) optimize="-O0 -DNDEBUG" place=quick pack=-1 && shift ;;
  --tests) optimize="-O1 -DNDEBUG" place=tests tests=ON && shift ;;
esac
machine=${TARBALL_MACHINE:-x86_64}
triplet=$machine-linux-gnu
folder=$(realpath -m "${1:-$tree/build/portable${TARBALL_MACHINE:+-$machine}}")
portable=$tree/share/packaging/portable
unset CC CXX CFLAGS CXXFLAGS LDFLAGS

mkdir -p "$folder/$place"
"$portable/sysroot.sh" "$folder/sysroot" "$machine"
export DLRUN_SYSROOT=$folder/sysroot DLRUN_MACHINE=$machine
libraries=$DLRUN_SYSROOT/usr/lib/$triplet
export PKG_CONFIG_SYSROOT_DIR=$DLRUN_SYSROOT PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$DLRUN_SYSROOT/usr/share/pkgconfig
folder=$(realpath "$folder/$place")

# What lies beside the programs, and the terms of all that is inside.
beside=$folder/beside
rm -rf "$beside"
mkdir -p "$beside/lib" "$beside/unwind" "$beside/licenses"
cp -L "$libraries"/{libdnnl.so.2,libgomp.so.1,libOpenCL.so.1} "$DLRUN_SYSROOT/absent/libdlrun-beside.so" "$beside/lib"
# libdw and what it needs, for the process alone that reads stacks: a site's MPI may need a newer libz.
for library in libdw.so.1 libelf.so.1 libz.so.1 liblzma.so.5 libbz2.so.1.0; do
  find "$libraries" "$DLRUN_SYSROOT/lib/$triplet" -maxdepth 1 -name "$library" -exec cp -L {} "$beside/unwind" \;
done
for package in libdnnl2 gcc-10-base ocl-icd-libopencl1 libcli11-dev nlohmann-json3-dev libfmt-dev libyaml-cpp-dev libexpected-dev \
  libspdlog-dev libssh-dev libssl-dev libsodium-dev libhwloc-dev zlib1g-dev libdeflate-dev libjpeg62-turbo-dev libpng-dev \
  libxxhash-dev libdw1 libelf1 zlib1g liblzma5 libbz2-1.0; do
  cp -L "$DLRUN_SYSROOT/usr/share/doc/$package/copyright" "$beside/licenses/$package"
done

cmake -S "$tree" -B "$folder/build" -G Ninja -D CMAKE_TOOLCHAIN_FILE="$portable/toolchain.cmake" \
  -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_FLAGS_RELEASE="$optimize" -D CMAKE_INSTALL_LIBDIR=lib \
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=12 -D BUILD_TESTING=$tests -D DLRUN_NVCC=OFF -D DLRUN_BESIDE="$beside" \
  -D DNNL_LIBRARY="-Wl,--push-state,--no-as-needed;$DLRUN_SYSROOT/absent/libdlrun-beside.so;-Wl,--pop-state;$libraries/libdnnl.so" \
  -D DLRUN_openmpi_WRAPPER="$DLRUN_SYSROOT/mpicc.openmpi" -D DLRUN_mpich_WRAPPER="$DLRUN_SYSROOT/mpicc.mpich" >&2
if [[ $tests == ON ]]; then
  cmake --build "$folder/build" -j "${TARBALL_JOBS:-2}" --target dlrun-pure-tests test-golden dlrun dlrun-agent dlrun-train >&2
  echo "$folder/build"
  exit
fi
cmake --build "$folder/build" -j "${TARBALL_JOBS:-2}" >&2

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$folder/build/CMakeCache.txt")
name=dlrun-$version-$machine
archive=$folder/$name.tar.xz package=$folder/dlrun-$version.deb
stage=$folder/stage.new/$name
rm -rf "$folder/stage.new"
cmake --install "$folder/build" --prefix "$stage" --strip >/dev/null
for part in ssh pmix unwind mpi-openmpi mpi-mpich mpi-mpich-abi; do
  if [[ ! -e $stage/lib/dlrun/libdlrun-$part.so ]]; then echo "tarball: error: libdlrun-$part.so was not built" >&2 && exit 1; fi
done
if [[ -e $archive && -e $package ]] && diff -r --no-dereference "$folder/stage" "$folder/stage.new" >/dev/null; then
  echo "$archive" # of the same files
  exit
fi
rm -rf "$folder/stage" "$archive" "$package"
mv "$folder/stage.new" "$folder/stage"
(cd "$folder/build" && cpack -G DEB -B "$folder/packages" >&2)
mv "$folder"/packages/*.deb "$package"
tar --create --file "$archive.new" --use-compress-program="xz $pack -T0" --directory "$folder/stage" --sort=name --owner=0 --group=0 \
  --numeric-owner "$name"
mv "$archive.new" "$archive"
echo "$archive"
