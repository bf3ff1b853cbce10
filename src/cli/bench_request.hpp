// The request of a benchmark: the job with its section `bench`, to which the command line adds axes.
#pragma once

#include <filesystem>

#include "src/cli/job_options.hpp"
#include "src/run/prepare.hpp"

namespace dlrun::cli {

/// The job is read, and has a section `bench` even where its file has none.
Result<job::Request> bench_request(const JobOptions& options, const std::vector<std::string>& axes,
                                   const Environment& environment);

/// The request of a benchmark that is there: its frozen job, on the allocation of today.
Result<job::Request> resumed_request(JobOptions options, const std::filesystem::path& folder,
                                     const Environment& environment);

}  // namespace dlrun::cli
