// The options of every command, as plain data, and the one function that reads a command line into them.
// CLI11 is known to options.cpp alone.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/base/result.hpp"
#include "src/cli/console.hpp"

namespace dlrun::cli {

struct CommonOptions {
  ColorChoice color = ColorChoice::automatic;
  Verbosity verbosity = Verbosity::normal;
  bool json = false;
};

// The nodes that the user names; empty where not.
struct HostFileOptions {
  std::string hostfile, private_hostfile, hosts;
};
// What names a job and changes it: shared by run and plan.
struct JobOptions {
  std::string job_file;
  std::string frozen_job;  // of a submission: in place of the job file
  std::string framework;
  std::vector<std::string> words;  // after "--"
  std::string name, nodes, gpus_per_node, tasks_per_node, cpus_per_task, mpi, via, retries, walltime;
  std::string no_output_limit, no_progress_limit;
  bool no_bind = false, stage = false;
  std::vector<std::string> sets;  // PATH=VALUE
  std::string run_dir, allocation_file, scheduler = "auto", framework_dir;
  HostFileOptions named;
};

struct RunOptions {
  JobOptions job;
  std::string tee;
  bool no_fold = false;
  std::string input_rank = "none";
  std::string link_of;  // folder of the chain that this run is a link of
};
struct PlanOptions {
  JobOptions job;
  std::string scripts;
  bool explain = false;
};
struct SubmitOptions {
  JobOptions job;
  bool dry_run = false;
  std::string chain;                  // links at most, or "auto"; empty: no chain
  std::string mtbf, measured, probe;  // with auto: see the planner of chains
  std::int64_t epochs = 0;
  std::optional<int> chain_links() const;  // nothing where it is no chain, or not said how many
};
struct ChainOptions {
  std::string action, folder;
  bool now = false;
};
struct AllocationOptions {
  std::string scheduler = "auto", file;  // file: an allocation as JSON, or R of Flux
  HostFileOptions named;
};
// dlrun hosts: the words may be lists; "-" is standard input.
struct HostsOptions {
  enum class Action { expand, compress, count };
  Action action = Action::expand;
  std::vector<std::string> words;
  std::string separator = "\n";
  bool unique = false;
};
struct FrameworksOptions {
  std::string name, framework_dir;
  std::string check;  // an adapter's file
};
struct SlurmEndOptions {
  std::uint32_t job_id = 0;
};
// Text that answers the command line itself: --help, --version.
struct Answer {
  std::string text;
};

struct Options {
  CommonOptions common;
  std::variant<RunOptions, PlanOptions, SubmitOptions, ChainOptions, AllocationOptions, HostsOptions,
               FrameworksOptions, SlurmEndOptions, Answer>
      command;
};

// `arguments` without the program's name. An Error (usage) names the word that is wrong and what may have
// been meant.
Result<Options> read_command_line(const std::vector<std::string>& arguments);

// The names of all commands, for completions and did-you-mean.
std::vector<std::string> command_names();

}  // namespace dlrun::cli
