// A request for the stacks of a run's ranks, as a file in its directory: `dlrun stacks` writes it from any
// machine that sees the directory, the head looks for it and writes the answer to stacks.json, which names
// the request. A later request takes the place of one before it.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/result.hpp"

namespace dlrun::job {

/// `id`: a word of its own for each request.
Result<void> request_stacks(const std::filesystem::path& run_directory, const std::string& id);
/// The id of the last request; empty where there is none, or none that can be read now.
std::string requested_stacks(const std::filesystem::path& run_directory);

}  // namespace dlrun::job
