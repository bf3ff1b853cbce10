// The file that a person named for the output of a command.
#pragma once

#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun::cli {

/// A device, a FIFO or a socket is written to, and a link is followed: only a file is replaced.
Result<void> write_output(const std::string& file, std::string_view content);

}  // namespace dlrun::cli
