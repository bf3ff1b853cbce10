// The flags that name a job and change it: run, plan and submit share them. Most of them set a key of the job
// file and need no field here: they become overrides of the job, with the flag as their source.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/arguments.hpp"
#include "src/cli/host_options.hpp"

namespace dlrun::cli {

struct JobOptions {
  std::string job_file;
  std::string frozen_job;                 // of a submission: in place of the job file
  std::vector<std::string> program;       // after "--"
  std::vector<plan::Override> overrides;  // of keys, by the flags that have one
  std::vector<std::string> sets;          // PATH=VALUE
  std::string run_dir, allocation_file, scheduler = "auto", framework_dir, site = "auto";
  HostOptions hosts;

  bool sets_key(std::string_view key) const;
};

std::span<const FlagRow<JobOptions>> job_flags();

/// JOB and the flags of a job.
void add_job(Arguments& arguments, JobOptions& options);

}  // namespace dlrun::cli
