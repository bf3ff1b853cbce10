#!/usr/bin/env bash
# clang_format.sh [--fix]: every C, C++ and CUDA source of the project is as clang-format with our .clang-format writes it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mode=(--dry-run --Werror)
if [[ ${1:-} == --fix ]]; then mode=(-i); fi

mapfile -d '' -t files < <(find src schedulers runtime tests share -type f \
  '(' -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' -o -name '*.cu' ')' -print0)
if ((${#files[@]} == 0)); then echo "no sources found" >&2 && exit 1; fi
clang-format --style=file "${mode[@]}" "${files[@]}" ||
  { echo "hint: tests/lint/clang_format.sh --fix" >&2 && exit 1; }
echo "${#files[@]} files"
