// Errors about the command line, whose hint is the help of the command where there is no better one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun::cli {

/// `command`: empty for dlrun as a whole.
Error usage_error(std::string_view command, std::string what, std::string hint = {});

/// "unknown action 'stats'; expected status or stop", with the nearest one as the hint.
Error unknown_action(std::string_view command, const std::string& action,
                     std::span<const std::string> actions);

}  // namespace dlrun::cli
