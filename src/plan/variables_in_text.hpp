// $NAME, ${NAME} and a leading ~/ in a text, for keys that no shell reads. Nothing else of a shell: no
// defaults, no commands, no patterns; "$$" is a dollar sign, and a dollar sign before anything else stays.
// What is unset is an Error, never an empty text.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun::plan {

// The value of a variable, or an Error that says why there is none.
using VariableLookup = std::function<Result<std::string>(const std::string& name)>;

Result<std::string> expand_text(std::string_view text, const VariableLookup& value_of);

}  // namespace dlrun::plan
