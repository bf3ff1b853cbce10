// The way back: the words of `dlrun run` that say what the options say, for a script that runs it later.
#pragma once

#include "src/base/types.hpp"
#include "src/cli/options.hpp"

namespace dlrun::cli {

// Without --scheduler and the host lists: inside a job, its scheduler gives the nodes.
Argv run_words(const JobOptions& options);

}  // namespace dlrun::cli
