#!/usr/bin/env bash
# site_files_test.sh BUILD-FOLDER: what sites copy from share/packaging. The Tcl module file is loaded and unloaded by Environment
# Modules; the Lmod one and the EasyBuild and Spack recipes are read by their languages only (neither tool is here).
set -euo pipefail
build=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../../share/packaging"

fail() { echo "site files: $1" >&2 && exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$("$build/bin/dlrun" --version | sed -n 's/^dlrun //p')
# Named by the version; all of them follow it.
for file in "modules/dlrun/$version.lua" "modules/dlrun/$version" easybuild/dlrun-"$version"-*.eb; do
  [[ -f $file ]] || fail "there is no share/packaging/$file"
done
grep -q "version(\"$version\")" spack/packages/dlrun/package.py || fail "the Spack package has no version $version"

mkdir "$work/dlrun"
sed "s:/apps/dlrun/.version:$work/installed:" "modules/dlrun/$version" >"$work/dlrun/$version"
# shellcheck disable=SC2016 # for the shell that it starts
said=$(env -i HOME="$work" PATH=/usr/bin:/bin MANPATH=/their/man bash -c '
  . /usr/share/modules/init/bash
  module use "$1" && module load "dlrun/$2" && echo "loaded $PATH $MANPATH"
  module unload "dlrun/$2" && echo "unloaded $PATH"' bash "$work" "$version" 2>&1)
grep -q "^loaded $work/installed/bin:.* $work/installed/share/man:.*/their/man" <<<"$said" || fail "the module does not load: $said"
grep -q "^unloaded /usr/bin:/bin" <<<"$said" || fail "the module leaves something behind: $said"

lua5.4 -e "assert(loadfile('modules/dlrun/$version.lua'))" || fail "the Lmod file is no Lua"
for file in easybuild/*.eb spack/packages/dlrun/package.py; do
  python3 -c 'import ast, sys; ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])' "$file"
done
echo "the Tcl module loads and unloads; the others are read"
