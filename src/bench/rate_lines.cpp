#include "src/bench/rate_lines.hpp"

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

std::string without_commas(std::string text) {
  std::erase(text, ',');
  return text;
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
                       "put the number into the first group: 'images/s: ([0-9.]+)'");
    out.push_back(*rate);
  }
  return out;
}

}  // namespace dlrun::bench
