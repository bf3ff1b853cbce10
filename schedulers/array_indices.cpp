#include "schedulers/array_indices.hpp"

#include <algorithm>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

tl::unexpected<Error> bad_indices(std::string_view list, std::string what) {
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("array indices '{}': {}", list, what),
                    .where = {},
                    .hint = "write them as 1-9, 0,4-7 or 1-20:5"});
}

// "4", "4-7" or "4-20:5".
struct IndexRange {
  std::int64_t first = 0, last = 0, step = 1;
};

Result<IndexRange> parse_index_range(std::string_view text, std::string_view list) {
  const std::vector<std::string> steps = split(text, ':');
  const std::vector<std::string> ends = split(steps.front(), '-');
  if (steps.size() > 2 || ends.size() > 2) return bad_indices(list, fmt::format("'{}' is not a range", text));
  const auto first = parse_integer(ends.front(), 0, INT32_MAX),
             last = parse_integer(ends.back(), 0, INT32_MAX),
             step = parse_integer(steps.size() == 2 ? steps.back() : "1", 1, INT32_MAX);
  if (!first || !last || !step) return bad_indices(list, fmt::format("'{}' is not a range of numbers", text));
  if (*last < *first) return bad_indices(list, fmt::format("'{}' is a descending range", text));
  return IndexRange{*first, *last, *step};
}

}  // namespace

Result<std::vector<int>> parse_array_indices(std::string_view list) {
  if (list.find('%') != list.npos)
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("array indices '{}': each element is a chain of its own, and the "
                                          "number that run at a time cannot be limited",
                                          list),
                      .where = {},
                      .hint = "remove the % and what follows it"});
  std::vector<int> out;
  for (const std::string& part : split(list, ',')) {
    const IndexRange range = TRY(parse_index_range(trim(part), list));
    for (std::int64_t index = range.first; index <= range.last; index += range.step) {
      if (out.size() == kMaxArrayJobs)
        return bad_indices(list, fmt::format("more than {} jobs", kMaxArrayJobs));
      if (std::find(out.begin(), out.end(), index) == out.end()) out.push_back(static_cast<int>(index));
    }
  }
  return out;
}

}  // namespace dlrun
