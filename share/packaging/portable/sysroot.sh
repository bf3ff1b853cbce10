#!/usr/bin/env bash
# sysroot.sh FOLDER [x86_64|aarch64]: what the tarball is built against, unless FOLDER is there and was made of the same packages.
# They are only unpacked; nothing of this system changes, and no root is needed. aarch64 needs Debian's cross compiler here.
#   Debian 11: glibc 2.31, the kernel's headers, what oneDNN needs, libdw (its static form is for programs alone, and dlrun's user of
#              it is a plug-in), Open MPI, MPICH and PMIx (headers, and libraries to link; the site's are used at run time)
#   Debian 12: headers and static libraries of all else. Their shared ones are not there, so nothing links them. oneDNN has no
#              static one: its shared one goes beside the programs, without asking for Debian 12's glibc (lower_versions.py).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(realpath -m "$1")
machine=${2:-x86_64}
case $machine in
  x86_64) debian=amd64 compiler= ;;
  aarch64) debian=arm64 compiler=aarch64-linux-gnu- ;;
  *) echo "sysroot: error: unknown machine '$machine': x86_64, aarch64" >&2 && exit 1 ;;
esac
triplet=$machine-linux-gnu
libraries=$folder/usr/lib/$triplet
base=(libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev libgomp1 ocl-icd-libopencl1
  libstdc++6 libgcc-s1 gcc-10-base libopenmpi-dev libopenmpi3 libmpich-dev libmpich12 libpmix-dev libpmix2
  libdw-dev libdw1 libelf-dev libelf1 zlib1g liblzma5 libbz2-1.0)
inside=(libdnnl-dev libdnnl2 doctest-dev libcli11-dev nlohmann-json3-dev libfmt-dev libfmt9 libyaml-cpp-dev libexpected-dev libspdlog-dev libspdlog1.10 libssh-dev libssl-dev
  libsodium-dev libhwloc-dev zlib1g-dev libdeflate-dev libdeflate0 libjpeg62-turbo-dev libpng-dev libxxhash-dev)

# unpack SUITE PACKAGE...: with a list file and a state of apt's own.
unpack() {
  local suite=$1 apt=$folder.apt from package
  shift
  from=$("$here/../archive.sh")
  rm -rf "$apt"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/packages"
  touch "$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from $suite main" >"$apt/sources.list"
  local own=(-q -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache"
    -o APT::Architecture="$debian" -o APT::Architectures="$debian" -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=- -o APT::Sandbox::User="$(id -un)"
    -o Acquire::Languages=none -o Acquire::Retries=3)
  apt-get "${own[@]}" update >&2
  (cd "$apt/packages" && apt-get "${own[@]}" download "$@" >&2)
  for package in "$apt"/packages/*.deb; do dpkg-deb --extract "$package" "$folder.new"; done
  rm -rf "$apt"
}

# A compiler wrapper of an MPI only tells where it is.
wrapper() { printf '#!/bin/sh\necho "%s"\n' "$2" >"$folder.new/$1" && chmod 755 "$folder.new/$1"; }

wanted="$machine ${base[*]} ${inside[*]}"
if [[ -d $folder && $wanted == "$(cat "$folder/.packages" 2>/dev/null)" ]]; then exit 0; fi
rm -rf "$folder.new"
unpack bookworm "${inside[@]}"
unpack bullseye "${base[@]}"
new=$folder.new/usr/lib/$triplet
rm -f "$new"/lib{ssh,sodium,hwloc,z,deflate,jpeg,turbojpeg,png,png16,xxhash,yaml-cpp,crypto,ssl}.so*
ln -s libgomp.so.1 "$new/libgomp.so" # the compiler's own is newer
# yaml-cpp's CMake files name the shared one.
sed -i -E 's/libyaml-cpp\.so[0-9.]*/libyaml-cpp.a/' "$new"/cmake/yaml-cpp/yaml-cpp-targets-*.cmake
# PMIx's file names what only its own sources include, and Debian 11 has it elsewhere.
sed -i -e '/^Requires:/d' -e "s|^libdir=.*|libdir=/usr/lib/$triplet/pmix2/lib|" \
  -e "s|^includedir=.*|includedir=/usr/lib/$triplet/pmix2/include|" "$new/pkgconfig/pmix.pc"
# That of libdw names what is linked to it already, and these have no files of their own here.
sed -i '/^Requires/d' "$new/pkgconfig/libdw.pc"
# Links that would leave the sysroot.
find "$folder.new" -type l -lname '/*' | while read -r link; do ln -snf "$folder$(readlink "$link")" "$link"; done
# The C++ headers of this machine's compiler.
version=$("${compiler}g++" -dumpversion)
if [[ -z $compiler ]]; then
  mkdir -p "$folder.new/usr/include/c++" "$folder.new/usr/include/$triplet/c++"
  cp -rp "/usr/include/c++/$version" "$folder.new/usr/include/c++/$version"
  cp -rp "/usr/include/$triplet/c++/$version" "$folder.new/usr/include/$triplet/c++/$version"
fi
wrapper mpicc.openmpi "-I$libraries/openmpi/include -L$libraries/openmpi/lib -lmpi"
wrapper mpicc.mpich "-I$folder/usr/include/$triplet/mpich -L$libraries -lmpich"
"$here/lower_versions.py" "$new/libdnnl.so.2" GLIBC_2.31 GLIBCXX_3.4.28 CXXABI_1.3.12 >&2
mkdir "$folder.new/absent"
headers=()
if [[ -n $compiler ]]; then # its own are of a newer glibc
  headers=(-nostdinc -isystem "/usr/lib/gcc-cross/$triplet/$version/include" -isystem "$folder.new/usr/include/$triplet"
    -isystem "$folder.new/usr/include")
fi
"${compiler}gcc" "${headers[@]}" -std=c11 -O2 -Wall -Wextra -fPIC -fvisibility=hidden --sysroot="$folder.new" -c "$here/absent.c" -o "$folder.new/absent/absent.o"
"${compiler}gcc" -std=c11 -O2 -Wall -Wextra -fPIC -shared -nostdlib -Wl,-soname,libdlrun-beside.so "$here/beside.c" \
  -o "$folder.new/absent/libdlrun-beside.so"
echo "$wanted" >"$folder.new/.packages"
rm -rf "$folder"
mv -T "$folder.new" "$folder"
