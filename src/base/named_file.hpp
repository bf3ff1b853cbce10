// A text file that a person named: where it is missing, the error names the nearest file beside it; what is
// far too long for such a file (a device, a data set) is refused before the memory is gone.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun {

constexpr std::size_t kMaxNamedFileBytes = std::size_t{64} << 20;

Result<std::string> read_named_file(const std::filesystem::path& path);

// The text without the mark that some editors put in front of UTF-8. UTF-16 is refused by name.
Result<std::string_view> utf8_text(std::string_view text, std::string_view where);

}  // namespace dlrun
