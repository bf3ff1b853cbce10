// Files of the run directory at the end of a run, when there is nothing left to do but to wait for them.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/result.hpp"
#include "src/process/file_writer.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::job {

// Waits until all is written, and says so after some seconds.
void wait_until_written(FileWriter& writer, RunStatus& status);

// replace_file() with its content synced, and with a word where it takes long.
Result<void> write_at_end(const std::filesystem::path& path, std::string content, RunStatus& status);

}  // namespace dlrun::job
