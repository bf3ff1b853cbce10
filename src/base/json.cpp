#include "src/base/json.hpp"

#include <algorithm>

namespace dlrun {

Result<Json> parse_json(std::string_view text, std::string_view where) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& problem) {
    const std::string_view before = text.substr(0, std::min(problem.byte, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column =
        newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
    return fail(Error{.kind = ErrorKind::input,
                      .what = "not valid JSON",
                      .where = fmt::format("{}:{}:{}", where, line, std::max<std::size_t>(column, 1))});
  } catch (const nlohmann::json::exception& problem) {
    return fail(Error{.kind = ErrorKind::input, .what = problem.what(), .where = std::string(where)});
  }
}

std::string to_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_pretty_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dlrun
