// posix_of(): a regular expression as users write it (Python, ECMAScript, grep -E) in the extended syntax of
// POSIX, whose matcher takes time in proportion to the line. What that syntax reads otherwise is translated
// (\d, (?:...)), and what it lacks is refused: look-ahead, lazy repetition, back-references. Pure.
#pragma once

#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun::bench {

struct PosixExpression {
  std::string text;
  std::size_t group = 0;  // the first one that the user counts; 0: the whole match
};

/// The Error's text is the reason alone.
Result<PosixExpression> posix_of(std::string_view expression);

}  // namespace dlrun::bench
