#!/usr/bin/env bash
# fetch.sh [--check]: where uPlot.min.js, uPlot.min.css and uPlot.LICENSE beside it come from: the npm package uplot, in the version
# below. Writes them anew, or with --check compares them. A build needs neither this script nor npm: the files are in the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

version=1.6.32
sha256=4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d # of the package as npm delivers it
declare -A files=([dist/uPlot.iife.min.js]=uPlot.min.js [dist/uPlot.min.css]=uPlot.min.css [LICENSE]=uPlot.LICENSE)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$folder" && npm pack --silent "uplot@$version" >/dev/null)
echo "$sha256  $folder/uplot-$version.tgz" | sha256sum --check --quiet
tar -xzf "$folder/uplot-$version.tgz" -C "$folder"
for name in "${!files[@]}"; do
  if [[ ${1:-} == --check ]]; then
    cmp "$folder/package/$name" "${files[$name]}"
  else
    install -m 644 "$folder/package/$name" "${files[$name]}"
  fi
done
