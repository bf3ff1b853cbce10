#!/bin/bash
# Every golden node script parses, and shellcheck finds nothing to say about it.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/jobs"
scripts=(*/*.sh)
((${#scripts[@]} >= 8))
for script in "${scripts[@]}"; do bash -n "$script"; done
shellcheck "${scripts[@]}"
echo "${#scripts[@]} scripts are clean"
