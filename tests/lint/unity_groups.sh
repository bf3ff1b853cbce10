#!/usr/bin/env bash
# unity_groups.sh: files that define one name in an unnamed namespace are put into different units (src/unity_groups.awk),
# also where the name is a further one of its declaration; other files share a unit.
set -euo pipefail
rule=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../src/unity_groups.awk")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

write() { printf 'namespace {\n%s\n}  // namespace\n' "$2" >"$1.cpp"; }
write alone 'constexpr Seconds kPause{0.1};'
write second 'constexpr Seconds kTimeout{10, 1}, kPause{0.1};'
write next_line $'constexpr std::array<int, 2> kOne{1, 2},\n    kPause{3, 4};'
write parameter $'int f(int a, int kPause) {\n  return a;\n}'

groups=$(awk -v most=9 -f "$rule" alone.cpp second.cpp next_line.cpp parameter.cpp | tr '\n' ' ')
[[ $groups == '1 alone.cpp 2 second.cpp 3 next_line.cpp 1 parameter.cpp ' ]] || { echo "groups: $groups" >&2 && exit 1; }
echo '4 files in 3 units'
