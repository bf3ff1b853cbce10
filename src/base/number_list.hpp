// Lists of small numbers as the kernel and people write them: "0,2-3". Strict: what is no such list is an
// Error that shows the part.
#pragma once

#include <string_view>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun {

// The kernel's own maximum on x86.
inline constexpr int kMaxNumaNodes = 1024;

/// The numbers in order, each below `limit` and once. An empty text is an empty list.
Result<std::vector<int>> parse_number_list(std::string_view text, int limit);

}  // namespace dlrun
