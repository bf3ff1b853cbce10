#!/usr/bin/env bash
# tables.sh RESULTS JOB... [-- FLAG...]: a table of each job file, all by one command, inside an allocation that is large enough for
# them. Each becomes .json (what was measured), .md, .tex (booktabs) and .html (with plots) in the folder RESULTS. Flags are those of
# `dlrun bench`. A table that is there is left as it is, and one that was begun is continued.
#
#   salloc -N4 share/examples/bench/tables.sh results share/examples/bench/small/*.yaml -- --repeats 5
set -euo pipefail
[[ $# -ge 2 ]] || { echo "usage: ${0##*/} RESULTS JOB... [-- FLAG...]" >&2 && exit 64; }
dlrun=${DLRUN:-dlrun}
results=$1
shift
jobs=()
while [[ $# -gt 0 && $1 != -- ]]; do
  jobs+=("$1")
  shift
done
flags=("${@:2}")

mkdir -p "$results/runs"
for job in "${jobs[@]}"; do
  name=$(basename "$job" .yaml)
  run=$results/runs/$name
  [[ ! -e $results/$name.html ]] || continue
  if [[ -e $run ]]; then
    "$dlrun" bench --resume "$run"
  else
    "$dlrun" bench --run-dir "$run" "${flags[@]}" "$job"
  fi
  cp "$run/bench.json" "$results/$name.json"
  for format in md tex html; do "$dlrun" bench-report "$run" -o "$results/$name.$format"; done
done
