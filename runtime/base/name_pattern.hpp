// Patterns of names, as a shell has them: * and ? and [ab].
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fnmatch.h>

namespace dlrun::runtime {

inline bool matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

inline bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

}  // namespace dlrun::runtime
