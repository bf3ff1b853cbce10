// A request to stop a run, as a file in its directory: `dlrun stop` writes it from any machine that sees the
// directory, and the head looks for it. It needs no scheduler that can signal a job, and no login on the
// head's node. Of two requests the more urgent one counts.
#pragma once

#include <filesystem>

#include "src/base/result.hpp"

namespace dlrun::job {

enum class RunStop {
  none,
  save,  // as the first SIGTERM does: what runs may save and end
  now,   // at once
};
Result<void> request_stop(const std::filesystem::path& run_directory, RunStop asked);
RunStop requested_stop(const std::filesystem::path& run_directory);

}  // namespace dlrun::job
