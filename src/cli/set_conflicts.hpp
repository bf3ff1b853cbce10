// Two ways of saying one thing: a flag of a key, and --set of the same key. Both with one value are one
// statement; with two values nobody knows which was meant, so the command line is refused. It compares with
// --set alone: a flag over the job file is what flags are for.
#pragma once

#include <vector>

#include "src/base/result.hpp"
#include "src/plan/config_layers.hpp"

namespace dlrun::cli {

/// An Error (usage) that names the flag and the --set which give one key two values.
Result<void> check_set_conflicts(const std::vector<plan::Override>& flags,
                                 const std::vector<plan::Override>& sets);

}  // namespace dlrun::cli
