// escaped(): a text with other texts in the place of some of its characters, for a format in which they mean
// something: HTML, Markdown, LaTeX.
#pragma once

#include <string>
#include <string_view>

namespace dlrun {

/// `of` gives what stands for a character; empty: the character itself.
template <class Of>
std::string escaped(std::string_view text, Of of) {
  std::string out;
  for (const char each : text) {
    const std::string_view other = of(each);
    if (other.empty())
      out += each;
    else
      out += other;
  }
  return out;
}

}  // namespace dlrun
