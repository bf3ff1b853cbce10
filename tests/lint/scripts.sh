#!/usr/bin/env bash
# scripts.sh: every shell script of the project passes shellcheck, every Python script compiles.
# What is a script is told by its first line, so that none escapes by its name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

shell=() golden=() python=()
while IFS= read -r -d '' file; do
  IFS= read -r first <"$file" || true
  case $first in
    '#!'*bash* | '#!'*/sh*) [[ $file == tests/golden/* ]] && golden+=("$file") || shell+=("$file") ;;
    '#!'*python3*) python+=("$file") ;;
  esac
done < <(find .ci src schedulers runtime share tests -type f -print0)
shell+=(share/completions/dlrun.bash)

shellcheck --shell=bash "${shell[@]}"
# What dlrun writes has words of users in it, and a dollar in single quotes is there on purpose.
shellcheck --shell=bash --exclude=SC2016 "${golden[@]}"
for file in "${python[@]}"; do
  /usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])' "$file"
done
echo "$((${#shell[@]} + ${#golden[@]})) shell scripts, ${#python[@]} Python scripts"
