#!/usr/bin/env bash
# setup.sh [--test]: installs from Debian what building dlrun needs; with --test also what its tests need.
# setup.sh --list build|suite: prints the packages of a kind and installs nothing (share/packaging/suite.sh asks).
# Asks dpkg first, so it returns at once (without root and without network) when nothing is missing.
# It installs Debian packages only: nothing is fetched from elsewhere, nothing is configured, nothing is removed, and no
# service is started (the tests need sshd, Slurm and Grid Engine as programs, in namespaces of their own).
set -euo pipefail

build_packages=(
  cmake ninja-build ccache g++ pkg-config
  libcli11-dev nlohmann-json3-dev libfmt-dev libyaml-cpp-dev libexpected-dev    # command line, JSON, text, YAML, results
  libssh-dev                                                                    # agents are started by ssh
  libdw-dev                                                                     # in which functions ranks are (dlrun stacks)
  libspdlog-dev                                                                 # the diagnostic log
  libsodium-dev                                                                 # agents prove themselves to their head
  libpmix-dev libhwloc-dev openmpi-bin libopenmpi-dev mpich libmpich-dev                     # starting MPI ranks; one plug-in per flavour
  libdnnl-dev zlib1g-dev libdeflate-dev libjpeg-dev libpng-dev libxxhash-dev                           # the training runtime
  dataset-fashion-mnist                                                         # what the quick start trains on
)
suite_packages=(                                            # for unit, golden, e2e and mpi tests, on other suites too
  mold                                                      # a quick linker for the tests' many programs
  doctest-dev python3 python3-numpy python3-torch           # unit tests; the reference that operators are compared with
  openssh-client util-linux procps tmux shellcheck          # programs of the tests
  zip unzip zstd bzip2 xz-utils                             # archives that jobs stage, and the portable tarball
  environment-modules python3-venv charliecloud busybox-static   # environments of ranks
  hdf5-tools                                                # brings the HDF5 library, which dlrun loads
  chromium poppler-utils                                    # the pages of dlrun report, as people see and print them
  python3-prometheus-client                                 # reads the metrics file as Prometheus does
  python3-mpi4py slurm-client                               # programs of the tests, and a library that dlrun loads
)
test_packages=(
  "${suite_packages[@]}"
  clang clang-format clang-tidy libclang-rt-14-dev          # the second compiler, lint, its sanitizers
  libopenblas0-openmp                                       # lets PyTorch run at its best in tests/bench
  slurm-wlm slurm-wlm-basic-plugins munge                   # tests/cluster: real daemons
  slurm-wlm-torque                                          # a qsub made of sbatch
  libjemalloc2 libtirpc3 libmunge2 libhwloc15               # what the unpacked Grid Engine links
  openssh-server iproute2 e2fsprogs pdsh clustershell tcsh
  python3-distributed                                       # a framework that is run over the cluster
  man-db mandoc zsh codespell                               # man pages, completions, spelling
  lua5.4                                                    # reads the Lmod file
  mmdebstrap                                                # roots of other suites: share/packaging/suite.sh
)
# Debian has either Slurm's qsub or Grid Engine's installed: these are only unpacked, and the tests lay them over /usr in a
# mount namespace.
unpacked_packages=(gridengine-common gridengine-client gridengine-master gridengine-exec)
unpacked=/opt/dlrun-tests/gridengine

usage() {
  echo "usage: share/setup.sh [--test | --list build|suite]"
  echo "  Installs from Debian what building dlrun needs; --test adds what its tests need."
}

fail() {
  printf 'setup: error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# The names among "$@" that are not installed, one per line.
missing_of() {
  local name state
  declare -A installed=()
  while read -r name state; do
    if [[ $state == installed ]]; then installed[$name]=1; fi
  done < <(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    if [[ -z ${installed[$name]:-} ]]; then echo "$name"; fi
  done
}

# Runs "$@" as root: as we are, or through sudo.
as_root() {
  if ((EUID == 0)); then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

# The unpacked packages, whole or not at all.
unpack() {
  local folder package
  folder=$(mktemp -d)
  (cd "$folder" && "${apt[@]}" download "${unpacked_packages[@]}") ||
    fail "apt-get download failed (its messages are above)" "hint: check the network and /etc/apt/sources.list"
  for package in "$folder"/*.deb; do dpkg-deb --extract "$package" "$folder/root"; done
  chmod 755 "$folder/root"
  as_root mkdir -p "${unpacked%/*}"
  as_root rm -rf "$unpacked.new"
  as_root cp -a --no-preserve=ownership "$folder/root" "$unpacked.new"
  as_root mv -T "$unpacked.new" "$unpacked"
  rm -rf "$folder"
}

wanted=("${build_packages[@]}")
to_unpack=0
case "${1:-}" in
  '') ;;
  --test)
    wanted+=("${test_packages[@]}")
    if [[ ! -d $unpacked ]]; then to_unpack=1; fi
    ;;
  --list)
    case "${2:-}" in
      build) printf '%s\n' "${build_packages[@]}" && exit 0 ;;
      suite) printf '%s\n' "${suite_packages[@]}" && exit 0 ;;
    esac
    usage >&2 && exit 64
    ;;
  -h | --help) usage && exit 0 ;;
  *) usage >&2 && exit 64 ;;
esac
if (($# > 1)); then usage >&2 && exit 64; fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail "this is not a Debian system: there is no dpkg-query or apt-get" \
    "hint: on another system install the counterparts of: ${wanted[*]}"
fi

mapfile -t missing < <(missing_of "${wanted[@]}")
if ((${#missing[@]} == 0 && !to_unpack)); then exit 0; fi

if ((EUID != 0)) && ! command -v sudo >/dev/null; then
  fail "installing packages needs root, and there is no sudo; missing: ${missing[*]}" \
    "hint: as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
fi

# Debian starts the services of what it installs unless this file says no; one that is there already stays as it is.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  # shellcheck disable=SC2016 # for the shell that writes the file
  as_root sh -c 'printf "#!/bin/sh\nexit 101\n" >"$1" && chmod 755 "$1"' sh "$policy"
  trap 'as_root rm -f "$policy"' EXIT
fi

if ((${#missing[@]} > 0)); then echo "setup: installing ${#missing[@]} Debian packages: ${missing[*]}" >&2; fi
apt=(apt-get -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
as_root "${apt[@]}" update ||
  fail "apt-get update failed (its messages are above)" "hint: check the network and /etc/apt/sources.list"
if ((${#missing[@]} > 0)); then
  as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
    fail "apt-get install failed (its messages are above)" "hint: dlrun needs Debian 12 or newer"
fi
if ((to_unpack)); then unpack; fi

mapfile -t missing < <(missing_of "${wanted[@]}")
if ((${#missing[@]} > 0)); then
  fail "still missing after installing: ${missing[*]}" "hint: apt-get install ${missing[*]}"
fi
