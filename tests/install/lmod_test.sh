#!/usr/bin/env bash
# lmod_test.sh [SUITE...]: the Lmod module file of share/packaging is loaded and unloaded by the Lmod of Debian suites (bookworm, trixie), each
# in a root of its own: its package and Environment Modules exclude each other. Needs root, for the roots.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fail() { echo "lmod: $1" >&2 && exit 1; }
if (($# == 0)); then set -- bookworm trixie; fi

for suite in "$@"; do
  # shellcheck disable=SC2016 # for the shell in the root
  said=$("$tree/share/packaging/suite.sh" run "$suite" lmod bash -c '
    set -e
    mkdir -p /apps/modules/dlrun
    cp /source/share/packaging/modules/dlrun/*.lua /apps/modules/dlrun
    . /etc/profile.d/lmod.sh
    export PATH=/usr/bin:/bin MANPATH=/their/man
    module use /apps/modules
    module load dlrun
    echo "loaded $PATH $MANPATH"
    module unload dlrun
    echo "unloaded $PATH $MANPATH"
    echo "Lmod $LMOD_VERSION"' 2>&1) || fail "$suite: $said"
  version=$(basename "$tree"/share/packaging/modules/dlrun/*.lua .lua)
  grep -q "^loaded /apps/dlrun/$version/bin:.* /apps/dlrun/$version/share/man:/their/man:*$" <<<"$said" || fail "$suite: the module does not load: $said"
  grep -q "^unloaded /usr/bin:/bin /their/man:*$" <<<"$said" || fail "$suite: the module leaves something behind: $said"
  echo "$suite: the module file loads and unloads with $(tail -1 <<<"$said")"
done
