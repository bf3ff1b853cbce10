#!/usr/bin/env bash
# spelling.sh: codespell over sources and texts, with the words below that are right here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

right_here=(
  te    # transposed edges and the like in kernels
  ot    # a variable in tests
  nd    # n-dimensional
  fo    # as in fan-out
  bu    # a word half typed, in a test of completions
  ndoes # mistakes that tests make on purpose
  paln
  plian
)
# Recorded output and files of other projects are not ours to correct (uPlot is in kept pages, too), and tests (*_test.*) make mistakes on purpose.
codespell --ignore-words-list "$(IFS=, && echo "${right_here[*]}")" \
  --skip '*_test.*,*/recorded/*,*/golden/*,*.gz,*.png,*/uPlot.*,*/small/*.html' \
  README.md CMakeLists.txt .ci src schedulers runtime frameworks templates share man tests
echo "spelling is fine"
