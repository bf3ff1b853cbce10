// dlrun submit --sweep: the points of a benchmark as jobs of their own.
#pragma once

#include "src/cli/cmd_submit.hpp"

namespace dlrun::cli {

Result<int> run_sweep(const SubmitCommand& options, const Context& context);

}  // namespace dlrun::cli
