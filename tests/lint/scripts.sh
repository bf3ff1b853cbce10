#!/usr/bin/env bash
# scripts.sh: every shell script of the project passes shellcheck, every Python script compiles.
# What is a script is told by its first line, so that none escapes by its name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

shell=() python=()
while IFS= read -r -d '' file; do
  IFS= read -r first <"$file" || true
  case $first in
    '#!'*bash* | '#!'*/sh*) shell+=("$file") ;;
    '#!'*python3*) python+=("$file") ;;
  esac
done < <(find .ci src schedulers runtime share tests -type f -print0)
shell+=(share/completions/dlrun.bash)

shellcheck --shell=bash "${shell[@]}"
for file in "${python[@]}"; do
  /usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])' "$file"
done
echo "${#shell[@]} shell scripts, ${#python[@]} Python scripts"
