#include "src/base/interval.hpp"

#include <cmath>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr double kMaxSteps = 1e15;  // a double counts them exactly

tl::unexpected<Error> bad_interval(std::string what) {
  return fail({.kind = ErrorKind::input,
               .what = std::move(what),
               .where = {},
               .hint = "write it as 200steps, 1epoch or 10min",
               .also = {}});
}

Result<Interval> count_of(std::string_view number, std::string_view text, Interval::Unit unit) {
  const auto amount = parse_number(trim(number));
  const bool steps = unit == Interval::Unit::steps;
  if (amount && *amount > 0 && *amount <= kMaxSteps && (!steps || *amount == std::floor(*amount)))
    return Interval{unit, *amount};
  return bad_interval(fmt::format("'{}' is not a positive {}number of {}", text, steps ? "whole " : "",
                                  steps ? "steps" : "epochs"));
}

}  // namespace

Result<Interval> parse_interval(std::string_view text) {
  for (const std::string_view word : {"steps", "step", "epochs", "epoch"})
    if (text.ends_with(word))
      return count_of(text.substr(0, text.size() - word.size()), text,
                      word.starts_with('s') ? Interval::Unit::steps : Interval::Unit::epochs);
  const auto duration = parse_duration(text);
  if (duration && duration->count() > 0) return Interval{Interval::Unit::time, duration->count()};
  return bad_interval(fmt::format("'{}' is neither steps, epochs nor a time", text));
}

}  // namespace dlrun
