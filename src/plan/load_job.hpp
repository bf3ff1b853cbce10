// Reads the files of a job and lays them over each other, above the preset of a known machine. The site's and
// the user's file may be absent; the job file may not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/plan/config_layers.hpp"
#include "src/plan/frozen_job.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/sites.hpp"

namespace dlrun::plan {

struct JobSources {
  std::optional<std::filesystem::path> job_file;   // unset: the command line has the whole job
  std::optional<ChosenSite> site = {};             // the preset of a known machine
  std::optional<std::filesystem::path> site_file;  // defaults for all jobs of a site
  std::optional<std::filesystem::path> user_file;
  std::vector<Override> overrides;  // in the order given
  std::vector<std::string> words;   // after "--"
  Environment variables = {};       // that values of the files may name
  SchedulerVariables scheduler_variables = SchedulerVariables::must_be_set;
  std::optional<FrozenJob> frozen = {};  // takes the place of all files; job_file is then a name alone
};

// command: python train.py --lr 0.1, as the list that more words can be added to.
void split_command(yaml::Node& tree);

// The merged tree, ready for read_job_spec(). `warnings` gets the old names that were used.
Result<yaml::Node> load_job_tree(const JobSources& sources, std::vector<std::string>& warnings);

// The tree read: relative paths are relative to the job file's folder, or to `here` where there is none.
Result<JobSpec> load_job(const JobSources& sources, const std::filesystem::path& here);

/// The job with further overrides, from its tree: no file is read again. `sources` has the variables.
Result<JobSpec> override_job(const JobSpec& spec, const JobSources& sources,
                             const std::vector<Override>& overrides);

}  // namespace dlrun::plan
