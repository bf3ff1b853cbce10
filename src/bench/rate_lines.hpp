// Rates in what a rank printed: a regular expression whose first group, or whose whole match where it has
// none, is a number. Lines that do not match are nothing; a match that is no number is an Error. Whatever the
// expression, a line takes time in proportion to its length: the head waits for it, and takes no signals.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::bench {

class RatePattern {
 public:
  /// `where` is the place of the expression, for errors.
  static Result<RatePattern> of(const std::string& expression, const std::string& where);
  /// The rates in the text, a line each at most.
  Result<std::vector<double>> rates_in(std::string_view text) const;

 private:
  struct Compiled;
  explicit RatePattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace dlrun::bench
