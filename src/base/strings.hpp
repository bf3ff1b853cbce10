// Small text helpers, and the nearest valid name for a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun {

/// Whether `c` is an ASCII digit, in any locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trim(std::string_view text);
std::string lower(std::string_view text);  // ASCII letters; all others as they are
std::vector<std::string> split(std::string_view text, char separator);  // keeps empty fields
std::string join(std::span<const std::string> parts, std::string_view separator);

// The candidate with the smallest edit distance (Damerau: a swap counts one), or empty where none is near
// enough to be what the writer meant: at most a third of the letters may differ.
std::string nearest(std::string_view word, std::span<const std::string> candidates);
// "did you mean 'batch'?" or, if no name is near, "valid names: a, b, c".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// What other tools call a thing, and what it is called here.
struct OtherName {
  std::string_view theirs, ours;
};
// Our name for another tool's word, whatever its case and whether it has '_' or '-'; empty where none is
// known.
std::string_view our_name(std::string_view word, std::span<const OtherName> others);

}  // namespace dlrun
