// The document dlrun.stacks/1 as lines for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "src/base/json.hpp"

namespace dlrun::cli {

enum class ShownThreads { first, all };

/// What the document lacks is not shown: it may be of another version of dlrun.
std::vector<std::string> stack_lines(const Json& document, ShownThreads shown);

}  // namespace dlrun::cli
