// A list of names for people: the first ten, and dots where there are more.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "src/base/strings.hpp"

namespace dlrun::runtime {

/// "a, b, ..."
inline std::string short_list(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxShown = 10;
  const std::size_t shown = std::min(names.size(), kMaxShown);
  return join(std::span(names).first(shown), ", ") + (shown < names.size() ? ", ..." : "");
}

}  // namespace dlrun::runtime
