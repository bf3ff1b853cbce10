// Text out of a data file, for error messages: short, in quotes, and without what a terminal would obey.
#pragma once

#include <string>
#include <string_view>

namespace dlrun::runtime {

inline std::string shown(std::string_view text) {
  constexpr std::size_t kMaxShown = 40;
  std::string out = "'";
  for (const char letter : text.substr(0, kMaxShown)) out += letter >= ' ' && letter <= '~' ? letter : '?';
  return out + (text.size() > kMaxShown ? "...'" : "'");
}

}  // namespace dlrun::runtime
