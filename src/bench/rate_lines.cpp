#include "src/bench/rate_lines.hpp"

#include <algorithm>
#include <array>

#include <regex.h>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/bench/rate_syntax.hpp"

namespace dlrun::bench {

struct RatePattern::Compiled {
  Compiled(regex_t made, std::size_t of_rate, std::string of)
      : expression(made), group(of_rate), where(std::move(of)) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { ::regfree(&expression); }

  regex_t expression;
  std::size_t group;  // that is the number
  std::string where;
};

namespace {

// The matcher keeps states per character of a line.
constexpr std::size_t kMaxLine = 2048;

// Commas between groups of three digits are left out; another one could as well be a decimal point, and makes
// it no number.
std::string without_commas(const std::string& text) {
  if (text.find(',') == std::string::npos) return text;
  const std::vector<std::string> groups = split(text.substr(0, text.find('.')), ',');
  const auto digits = [](std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), is_digit);
  };
  const bool is_first_good = digits(groups.front()) && groups.front().size() <= 3;
  const bool are_good =
      is_first_good && std::all_of(groups.begin() + 1, groups.end(),
                                   [&](const std::string& each) { return digits(each) && each.size() == 3; });
  std::string out = text;
  if (are_good) std::erase(out, ',');
  return out;
}

std::string reason_of(int code, const regex_t& expression) {
  std::array<char, 200> text{};
  ::regerror(code, &expression, text.data(), text.size());
  return text.data();
}

tl::unexpected<Error> no_expression(const std::string& expression, const std::string& where,
                                    const std::string& reason) {
  return bad_input(where, fmt::format("bench.rate: '{}' is not a regular expression: {}", expression, reason),
                   "write it as 'images/s: ([0-9.]+)'");
}

// What the group matched in the line, empty where the group took no part; unset where the line does not
// match.
Result<std::optional<std::string>> found_in(const std::string& line, const regex_t& expression,
                                            std::size_t group, const std::string& where) {
  std::vector<regmatch_t> matches(group + 1);
  const int code = ::regexec(&expression, line.c_str(), matches.size(), matches.data(), 0);
  if (code == REG_NOMATCH) return std::optional<std::string>();
  if (code != 0)
    return bad_input(where, fmt::format("bench.rate: {}", reason_of(code, expression)),
                     "write a simpler expression");
  const regmatch_t& match = matches.back();
  if (match.rm_so < 0) return std::optional(std::string());
  return std::optional(line.substr(static_cast<std::size_t>(match.rm_so),
                                   static_cast<std::size_t>(match.rm_eo - match.rm_so)));
}

}  // namespace

Result<RatePattern> RatePattern::of(const std::string& expression, const std::string& where) {
  const auto posix = posix_of(expression);
  if (!posix) return no_expression(expression, where, posix.error().what);
  regex_t made;
  const int code = ::regcomp(&made, posix->text.c_str(), REG_EXTENDED);
  if (code != 0) return no_expression(expression, where, reason_of(code, made));
  return RatePattern(std::make_shared<const Compiled>(made, posix->group, where));
}

Result<std::vector<double>> RatePattern::rates_in(std::string_view text) const {
  std::vector<double> out;
  while (!text.empty()) {
    std::string line(text.substr(0, std::min(text.find('\n'), kMaxLine)));
    std::erase(line, '\0');  // would end it
    text.remove_prefix(
        std::min(text.size(), text.find('\n') == std::string_view::npos ? text.size() : text.find('\n') + 1));
    const auto match = TRY(found_in(line, compiled_->expression, compiled_->group, compiled_->where));
    if (!match) continue;
    const std::string& found = *match;
    const auto rate = parse_number(without_commas(found));
    if (!rate)
      return bad_input(compiled_->where,
                       fmt::format("bench.rate matched {}, which is not a number", short_text(Json(found))),
                       found.find(',') == std::string::npos
                           ? "put the number into the first group: 'images/s: ([0-9.]+)'"
                           : "a comma may stand between groups of three digits, as in 1,234.5; the decimal "
                             "point is '.'");
    out.push_back(*rate);
  }
  return out;
}

}  // namespace dlrun::bench
