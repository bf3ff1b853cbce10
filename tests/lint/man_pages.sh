#!/usr/bin/env bash
# man_pages.sh: every man page is clean for both formatters that readers use (mandoc and groff), names its own
# section right, and is written within 120 columns.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../man"

pages=(*.[1-8])
bad=0
complain() { echo "$1" >&2 && bad=1; }

for page in "${pages[@]}"; do
  lint=$(mandoc -T lint -W warning "$page" || true)
  if [[ -n $lint ]]; then complain "$lint"; fi
  # man needs a formatted width and a locale; LC_ALL=C.UTF-8 is on every Debian.
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings --encoding=utf8 --local-file "./$page" 2>&1 >/dev/null || true)
  if [[ -n $warnings ]]; then complain "$page: $warnings"; fi
  name=${page%.*} section=${page##*.}
  grep -qiE "^\.(TH|Dt) \"?${name}\"? \"?${section}" "$page" || complain "$page: its heading names another page"
  long=$(awk 'length > 120 {print FILENAME ":" FNR ": longer than 120 columns"}' "$page")
  if [[ -n $long ]]; then complain "$long"; fi
  # mdoc takes every further word of such a line into the flag ("--full -65, -each") or into the quotes.
  joined=$(grep -nE '\bFl -?[a-z-]+ [a-z0-9]|\bQl .*\b(No|Fl|Ql|Cm|Ic|Pa|Xr) |^\.Dl .*[^&] , ' "$page" || true)
  if [[ -n $joined ]]; then complain "$page:$joined: words after this macro become part of it"; fi
done
if ((bad == 0)); then echo "${#pages[@]} pages"; fi
exit "$bad"
