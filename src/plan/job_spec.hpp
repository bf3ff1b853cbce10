// JobSpec: what the user asked for, checked and typed, with every default filled in. It says nothing about
// machines. read_job_spec() is strict: unknown keys, wrong types and bad units are errors with
// file:line:column and the nearest valid name.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/enum_names.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/types.hpp"
#include "src/base/yaml.hpp"
#include "src/plan/bench_spec.hpp"
#include "src/plan/check_use.hpp"
#include "src/plan/elastic.hpp"
#include "src/plan/environment_rules.hpp"
#include "src/plan/expand.hpp"
#include "src/plan/memory_policy.hpp"
#include "src/plan/parallel.hpp"
#include "src/plan/relay_use.hpp"
#include "src/plan/ssh_spec.hpp"
#include "src/plan/stage_in.hpp"
#include "src/plan/valid_names.hpp"

namespace dlrun::plan {

// What is asked of each node beside CPUs and GPUs: only the scheduler reads it.
struct NodeDemand {
  std::optional<std::uint64_t> memory;  // bytes
  std::string gpu_type, constraint;
  bool exclusive = false;
};

// Nodes that are unlike the others: what each of so many has.
struct NodeChunk {
  int nodes = 1;
  std::optional<int> cpus, gpus;
  std::optional<std::uint64_t> memory;
};

struct Resources {
  std::optional<int> nodes;      // the most of a range; unset: all of the allocation
  std::optional<int> min_nodes;  // of a range: a run takes all nodes of the allocation, so many at least
  std::optional<int> gpus_per_node;
  std::optional<int> tasks_per_node;  // unset: the GPUs per node, else 1
  std::optional<int> cpus_per_task;
  std::optional<Seconds> walltime;  // kUnlimited: UNLIMITED was said
  std::string queue, account;
  NodeDemand node;
  std::vector<NodeChunk> chunks;  // together they are all nodes
  std::string qos;
  std::string mail;                      // the address
  std::vector<std::string> mail_events;  // begin, end, fail
  std::vector<std::string> extra;        // further directives for the scheduler, verbatim
};

enum class Placement { shared, dedicated };
inline constexpr auto kPlacements =
    enum_names<Placement>({{Placement::shared, "shared"}, {Placement::dedicated, "dedicated"}});

struct RoleSpec {
  std::string name;
  std::optional<int> count;            // over the whole job
  std::optional<int> per_node;         // or a node; neither: the adapter's default
  std::optional<int> gpus;             // a task; 0 hides them
  std::optional<int> port;             // the first one on each node; unset: the adapter's, or a free one
  std::optional<Placement> placement;  // unset: that of the adapter
};

struct Container {
  std::string image, engine;
  std::vector<std::string> mounts;
};

struct JobEnvironment {
  std::vector<std::string> module_paths = {};  // absolute once read
  std::vector<std::string> modules;
  std::string activate;            // "conda:NAME", "venv:PATH"
  std::vector<std::string> setup;  // shell lines
  EnvironmentChanges set;
  EnvironmentChanges defaults = {};  // where the user, modules and setup lines set nothing
  EnvironmentRules rules = {};
  std::optional<Container> container;
};

// A command before those of ranks: a profiler, a debugger.
struct Wrap {
  Argv command;
  std::vector<Rank> ranks;  // empty: all
};

struct LaunchSpec {
  std::string via = "auto";
  int fan_out = 32;
  Seconds start_timeout{120}, setup_timeout{1800};  // the latter 0: no limit
  Seconds grace{10};
  Seconds lost_after{15};
  Seconds no_output{0}, no_progress{0}, finalize{30};  // 0: never
  int retries = 0;                                     // further attempts in the same allocation
  std::string mpi = "auto";                            // auto, pmix, pmi1, native, none
  bool bind = true;
  MemoryPolicy memory = {};
  RelayUse relay = RelayUse::automatic;
  CheckUse check = CheckUse::off;      // of the nodes, before ranks start
  Seconds bad_node_memory{24 * 3600};  // how long jobs leave out nodes that were bad; 0: not at all
  std::string metrics_file;            // of Prometheus; relative: to the run directory; empty: none
  std::optional<Wrap> wrap;
  bool stage = false;  // dlrun is copied to nodes that do not have it
  SshSpec ssh = {};
};

struct CheckpointSpec {
  std::string dir;              // empty: no checkpoints; absolute once read
  std::string files;            // pattern of the program's own checkpoints; absolute once read
  std::string every = "10min";  // also "200steps", "1epoch": checked, kept as text for the runtime
  int keep = 3;
  std::vector<std::string> request{"control", "file", "signal:TERM"};  // or another signal
  std::string lead = "auto";
};

struct ChainSpec {
  std::optional<int> max_links;
  int retries = 0;
  std::string mode = "resubmit";  // or requeue, presubmit
  std::optional<Seconds> mtbf;    // mean time between failures of one node, for the planner
};

struct JobSpec {
  std::string name;
  std::string framework;
  Resources resources;
  std::vector<RoleSpec> roles;
  Argv command;
  std::vector<StageIn> stage = {};  // copied to each node before the ranks
  JobEnvironment environment;
  LaunchSpec launch;
  CheckpointSpec checkpoint;
  ChainSpec chain;
  std::optional<ParallelSpec> parallel;  // unset: the launcher knows no process groups
  std::optional<Elastic> elastic;        // unset: the first lost rank ends the run
  std::optional<BenchSpec> bench;        // what `dlrun bench` measures; a run ignores it
  yaml::Node train;                      // framework: builtin only; the runtime checks it
  std::filesystem::path base_directory;  // of the job file: what relative paths in it are relative to
  yaml::Node tree;  // what all this was read from, as it was written: later steps name places with it
  std::vector<std::string> warnings = {};  // old names that were used
  std::vector<Expansion> expansions = {};  // where the tree names variables: what was read instead
};

// `root` is the merged tree; `base` is the folder of the job file.
Result<JobSpec> read_job_spec(const yaml::Node& root, const std::filesystem::path& base);
// The keys are those of the job file.
Json to_json(const JobSpec& spec);

// Where the value at a dotted path was given ("job.yaml:4:20", "--nodes"); empty where it has its
// default.
std::string place_of(const JobSpec& spec, std::string_view path);

}  // namespace dlrun::plan
