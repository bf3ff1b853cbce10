// The sections of `dlrun diff`, the most telling first: a row of the table each, with a function that takes
// its values by name from a run. Pure. What a section holds is compared by name; nothing here decides what
// counts as equal.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/report/diff/diff_run.hpp"

namespace dlrun::report {

using DiffValues = std::map<std::string, Json>;

struct DiffSection {
  std::string_view name;
  // Unset: the run does not tell.
  std::optional<DiffValues> (*values)(const DiffRun&);
};
std::span<const DiffSection> diff_sections();

/// Leaves of a document by their path: {"a": {"b": [1, 2]}} is "a.b" with [1, 2].
DiffValues flattened(const Json& value);

/// The version of each loaded module by its name: "cuda/11.8" is "cuda" with "11.8".
DiffValues modules_by_name(const Json& modules);
/// Libraries by their name without version: "/usr/lib/libz.so.1.3" with build "ab" is "libz.so" with
/// "/usr/lib/libz.so.1.3 (ab)".
DiffValues libraries_by_name(const Json& libraries);

}  // namespace dlrun::report
