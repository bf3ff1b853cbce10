#!/usr/bin/env bash
# onednn3.sh: builds the training runtime against oneDNN 3, which Debian 13 has, and runs the unit tests of the graph with it.
# Debian 13's packages are only unpacked, into build/onednn3/debian: nothing of this system changes. The programs run with that
# system's loader and C library, as its oneDNN needs them; all else is this system's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
unset CC CXX CFLAGS CXXFLAGS LDFLAGS

folder=$PWD/build/onednn3
debian=$folder/debian
packages=(libdnnl-dev libdnnl3.6 libc6 libstdc++6 libgcc-s1 libgomp1)

# apt with a list file, a cache and a state of its own.
apt=$folder/apt
debian_apt() {
  apt-get -q -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
    -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=- -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}
unpack() {
  local package
  rm -rf "$apt" "$debian.new"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/packages"
  touch "$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >"$apt/sources.list"
  debian_apt update
  (cd "$apt/packages" && debian_apt download "${packages[@]}")
  for package in "$apt"/packages/*.deb; do dpkg-deb --extract "$package" "$debian.new"; done
  rm -rf "$apt"
  mv -T "$debian.new" "$debian"
}
if [[ ! -d $debian ]]; then unpack; fi

libraries=$debian/usr/lib/x86_64-linux-gnu
cmake -S . -B "$folder/tree" -G Ninja -D CMAKE_BUILD_TYPE=Release -D BUILD_TESTING=ON -D DLRUN_NVCC=OFF \
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=12 \
  -D DNNL_INCLUDE="$debian/usr/include" -D DNNL_LIBRARY="$libraries/libdnnl.so" \
  -D CMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined
cmake --build "$folder/tree" --target test-graph

test=$(find "$folder/tree" -name test-graph -type f -perm -u+x -print -quit)
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries:/usr/lib/x86_64-linux-gnu" "$test" --minimal
