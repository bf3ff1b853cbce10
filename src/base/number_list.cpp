#include "src/base/number_list.hpp"

#include <algorithm>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {

Result<std::vector<int>> parse_number_list(std::string_view text, int limit) {
  std::vector<int> out;
  if (trim(text).empty()) return out;
  for (const std::string& part : split(trim(text), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash), 0, limit - 1);
    const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1), 0, limit - 1);
    if (!first || !last || *last < *first)
      return fail(
          Error{.kind = ErrorKind::input,
                .what = fmt::format("'{}' is neither a number below {} nor a range such as 2-3", part, limit),
                .where = {},
                .hint = {},
                .also = {}});
    for (std::int64_t i = *first; i <= *last; ++i) out.push_back(static_cast<int>(i));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace dlrun
