#!/usr/bin/env bash
# archive.sh: the address of the Debian archive that this system's apt uses; a mirror stays a mirror. Other suites are there too.
set -euo pipefail
# shellcheck disable=SC2016 # apt's own format
found=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' |
  awk '$1 == "Debian" && $2 == "main" && $3 !~ /security/ && !found { found = $3 } END { print found }')
if [[ -z $found ]]; then
  printf 'archive: error: apt knows no Debian archive\n  hint: apt-get update\n' >&2
  exit 1
fi
echo "$found"
