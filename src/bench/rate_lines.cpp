#include "src/bench/rate_lines.hpp"

#include <regex>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::bench {

struct RatePattern::Compiled {
  std::regex expression;
  std::string where;
};

namespace {

// The library's search recurses per character: a longer line could end the process.
constexpr std::size_t kMaxLine = 2048;

std::string without_commas(std::string text) {
  std::erase(text, ',');
  return text;
}

}  // namespace

Result<RatePattern> RatePattern::of(const std::string& expression, const std::string& where) {
  try {
    return RatePattern(std::make_shared<const Compiled>(Compiled{std::regex(expression), where}));
  } catch (const std::regex_error& problem) {
    return bad_input(
        where, fmt::format("bench.rate: '{}' is not a regular expression: {}", expression, problem.what()),
        "write it as 'images/s: ([0-9.]+)'");
  }
}

Result<std::vector<double>> RatePattern::rates_in(std::string_view text) const {
  std::vector<double> out;
  while (!text.empty()) {
    const std::string line(text.substr(0, std::min(text.find('\n'), kMaxLine)));
    text.remove_prefix(
        std::min(text.size(), text.find('\n') == std::string_view::npos ? text.size() : text.find('\n') + 1));
    std::smatch match;
    try {
      if (!std::regex_search(line, match, compiled_->expression)) continue;
    } catch (const std::regex_error& problem) {
      return bad_input(compiled_->where, fmt::format("bench.rate: {}", problem.what()),
                       "write a simpler expression");
    }
    const std::string found = match.size() > 1 ? match[1].str() : match[0].str();
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
