#!/usr/bin/env bash
# tables.sh RESULTS JOB... [-- FLAG...]: a table of each job file, all by one command, inside an allocation that is large enough for
# them. Each becomes .json (what was measured), .md, .tex (booktabs) and .html (with plots) in the folder RESULTS. Flags are those of
# `dlrun bench`. A table that is there is left as it is, and one that was begun is continued. A job of which no point could be measured
# ends with exit code 1 once all others have their tables.
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
same=$(for job in "${jobs[@]}"; do basename "$job" .yaml; done | sort | uniq -d)
[[ -z $same ]] || { echo "${0##*/}: several job files would be one table: ${same//$'\n'/, }" >&2 && exit 64; }

measure() {  # NAME JOB: exit code 1 says that no point could be measured
  local run=$results/runs/$1
  if [[ -e $run ]]; then
    "$dlrun" bench --resume "$run"
  else
    "$dlrun" bench --run-dir "$run" "${flags[@]}" "$2"
  fi
}

mkdir -p "$results/runs"
failed=0
for job in "${jobs[@]}"; do
  name=$(basename "$job" .yaml)
  run=$results/runs/$name
  [[ ! -e $results/$name.html ]] || continue
  code=0
  measure "$name" "$job" || code=$?
  [[ $code -le 1 ]] || exit "$code"
  if [[ $code -eq 1 ]]; then
    failed=1
    continue
  fi
  cp "$run/bench.json" "$results/$name.json"
  for format in md tex html; do "$dlrun" bench-report "$run" -o "$results/$name.$format"; done
done
exit "$failed"
