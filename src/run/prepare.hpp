// prepare(): from what the user typed to a plan: job tree, allocation, adapter, plan. The same for `dlrun
// plan`, which stops here, and for `dlrun run`. It reads files and asks the scheduler; it writes and starts
// nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "schedulers/scheduler.hpp"
#include "src/base/environment.hpp"
#include "src/base/install.hpp"
#include "src/plan/adapter.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/load_job.hpp"
#include "src/plan/make_plan.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::job {

// What to do outside of a scheduler's job that is asked for with --nodes.
enum class MissingNodes { refuse, invent };

struct Request {
  plan::JobSources sources;
  std::optional<plan::JobSpec> spec = {};                // read from the sources already
  std::filesystem::path here;                            // the user's working directory
  std::optional<std::filesystem::path> allocation_file;  // plan for this one instead of the one we stand in
  std::optional<Allocation> allocation = {};             // found already
  std::string scheduler = "auto";
  NamedHosts named_hosts;
  std::optional<std::filesystem::path> framework_dir;
  MissingNodes missing_nodes = MissingNodes::refuse;   // the other: for plans that are only shown
  bool preview = false;                                // job id without time in it: same input, same plan
  std::optional<Rank> input_rank = {};                 // that reads our standard input
  std::optional<std::filesystem::path> run_directory;  // unset: runs/NAME-ID below `here`
  Environment environment;
  Installation installation;
};

struct Prepared {
  yaml::Node tree;
  plan::JobSpec spec;
  Allocation allocation;
  plan::Adapter adapter;
  plan::PlanInput input;  // what the plan was made of: a further attempt changes it
  plan::Plan plan;
  std::optional<plan::ChosenSite> site = {};
};

// The layers below the job file that exist: the preset of a known machine (`site`: its name, "auto" or
// "none"), the site's and the user's dlrun.yaml.
Result<void> add_configuration_files(plan::JobSources& sources, const std::string& site,
                                     const Environment& environment, const Installation& installation);
// "20261127-235959-1a2b": sorts by time, and two runs of one second differ.
std::string new_job_id(Instant now);
plan::AdapterPath adapters_of(const Request& request);

/// The nodes that the request names, or that its scheduler has granted.
Result<Allocation> allocation_of(const Request& request);

/// The request's job: read from its sources unless that was done already.
Result<plan::JobSpec> job_spec_of(const Request& request);

Result<Prepared> prepare(const Request& request, Instant now);

}  // namespace dlrun::job
