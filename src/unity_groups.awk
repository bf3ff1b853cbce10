# unity_groups.awk -v most=N FILE...: prints "GROUP FILE" for each file, so that no two files of a group define the same name in
# an unnamed namespace and no group has more than N files. It reads text, not C++: definitions at the left edge, as clang-format
# writes them. What it does not see (two macros of one name) is an error of the compiler, in the unity build, by name.

function note(name) { if (!((FILENAME, name) in known)) { known[FILENAME, name]; names[FILENAME] = names[FILENAME] name " " } }

# The further names of a declaration: "constexpr Seconds kTimeout{10}, kPause{0.1};", which may go over several lines.
function note_others(text,   parts, n, i) {
  while (gsub(/\{[^{}]*\}|\([^()]*\)|<[^<>]*>|"[^"]*"/, "", text)) {}
  sub(/;.*/, "", text)
  n = split(text, parts, ",")
  for (i = 2; i <= n; i++) {
    sub(/^[ *&]+/, "", parts[i]); sub(/[^A-Za-z_0-9].*/, "", parts[i])
    if (parts[i] ~ /^[A-Za-z_]/) note(parts[i])
  }
}

FNR == 1 { files[++count] = FILENAME; within = 0; names[FILENAME] = ""; pending = "" }
pending != "" {
  pending = /\{$/ ? "" : pending $0
  if (pending ~ /;/) { note_others(pending); pending = "" }
  next
}
/^namespace \{/ { within = 1; next }
/^}  \/\/ namespace/ { within = 0; next }
within || /^static / || /^using [A-Za-z_0-9]+ =/ || /^#define / {
  line = $0
  if (line !~ /^[A-Za-z#]/ || line ~ /^(namespace|template|TEST_CASE|public|private|protected)/) next
  if (line ~ /^(constexpr|const|static|thread_local) /) {
    if (line ~ /;/) note_others(line)
    else if (line !~ /\{$/) pending = line
  }
  sub(/^#define /, "", line)
  if (line ~ /^(struct|class|enum class|enum|union|using) /) { sub(/^(enum class|struct|class|enum|union|using) /, "", line); sub(/[^A-Za-z_0-9].*/, "", line) }
  else { sub(/(\(| =|=|\{|\[|;).*/, "", line); sub(/^.*[ &*]/, "", line) }
  if (line ~ /^[A-Za-z_][A-Za-z_0-9]*$/) note(line)
}

END {
  for (i = 1; i <= count; i++) {
    if (!(files[i] in names)) continue
    n = split(names[files[i]], mine, " ")
    for (group = 1; ; group++) {
      free = sizes[group] < most
      for (j = 1; free && j <= n; j++) free = !((group, mine[j]) in taken)
      if (free) break
    }
    sizes[group]++
    for (j = 1; j <= n; j++) taken[group, mine[j]]
    print group, files[i]
  }
}
