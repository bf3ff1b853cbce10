// Plan: everything decided, nothing computed later. Hosts, ranks, roles, GPUs, CPUs, environment and argv of
// every rank are here; scripts, launchers, agents and records only read it. A plan has a JSON form that can
// be kept, compared and fed back; an agent gets the slice of its node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/enum_names.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/plan/elastic.hpp"
#include "src/plan/environment_rules.hpp"
#include "src/plan/memory_policy.hpp"
#include "src/plan/parallel.hpp"
#include "src/plan/stage_in.hpp"

namespace dlrun::plan {

enum class ProcessModel { per_rank, per_node, per_job };
// pmix: Open MPI and what speaks PMIx; pmi1: MPICH, Intel MPI; native: the site's launcher starts one agent
// per rank.
enum class MpiProtocol { none, pmix, pmi1, native };
inline constexpr auto kProcessModels = enum_names<ProcessModel>({{ProcessModel::per_rank, "per-rank"},
                                                                 {ProcessModel::per_node, "per-node"},
                                                                 {ProcessModel::per_job, "per-job"}});
inline constexpr auto kMpiProtocols = enum_names<MpiProtocol>({{MpiProtocol::none, "none"},
                                                               {MpiProtocol::pmix, "pmix"},
                                                               {MpiProtocol::pmi1, "pmi1"},
                                                               {MpiProtocol::native, "native"}});

// The rank's share of the cores of its node: the agent divides the cores that the job may use into `of` equal
// runs and binds the rank to run number `share`. Unset if binding is off.
struct CpuShare {
  int share = 0;
  int of = 1;
  friend bool operator==(const CpuShare&, const CpuShare&) = default;
};

struct RankPlan {
  Rank rank;
  std::string role;    // "worker", "ps", ...; frameworks without roles have one, "worker"
  int task_index = 0;  // position in the role's list, as ClusterSpec demands
  NodeIndex node;
  LocalRank local_rank;
  std::optional<std::vector<std::string>> gpus;  // its own; unset: not our business; empty: hidden
  std::optional<std::vector<std::string>> visible_gpus = {};  // what it sees, in this order (gpu_view.hpp)
  std::optional<CpuShare> cpus;
  std::optional<int> port;  // where its peers reach it, for roles that have ports
  bool service = false;     // runs until the ranks that are none have ended, and is then ended
  std::optional<PerGroupKind> group_ranks = {};  // in each of its process groups; unset: it is in none
  EnvironmentChanges environment;                // over the plan's common one
  EnvironmentChanges defaults;  // only where the environment, after the prolog, has no such name
  Argv argv;
};

struct NodePlan {
  NodeIndex index;
  HostName host;
  std::optional<std::string> address = {};  // what other nodes reach it by, where that is not `host`
  const std::string& reached_by() const { return address ? *address : host.get(); }
};

// What is copied to each node before its prolog, and the folder below which ranks find it by name.
struct Stage {
  std::string folder = {};
  std::vector<StageIn> items = {};
  bool empty() const { return items.empty(); }
  std::string path_of(const StageIn& item) const { return folder + "/" + item.name; }
};

// Shell lines run once per node before its ranks, in this order; their environment is what the ranks start
// from.
struct Prolog {
  std::vector<std::string> module_paths = {};  // module use ..., before the first load
  std::vector<std::string> modules;            // module load ...
  std::string activate;                        // shell line, empty for none
  std::vector<std::string> setup;              // the user's own lines
  std::vector<Argv> needs = {};  // probes for what the framework needs; each says what is missing
  bool empty() const {
    return module_paths.empty() && modules.empty() && activate.empty() && setup.empty() && needs.empty();
  }
};

struct Limits {
  Seconds start_timeout{120};       // for the agents to arrive, and for ranks once all is set up
  Seconds setup_timeout{1800};      // for the prolog; 0: no limit
  Seconds grace{10};                // between TERM and KILL
  Seconds grace_after_failure{10};  // the same where a rank has failed and the others can only go
  Seconds lost_after{15};           // a node that is not heard for so long is lost
  // The job is hung after so long: 0 is never.
  Seconds no_output{0}, no_progress{0}, finalize{30};
};

struct Plan {
  std::string name;
  std::string job_id;  // unique a run: names the PMI namespace and the run directory
  int attempt = 1;
  std::string framework;
  ProcessModel process = ProcessModel::per_rank;
  MpiProtocol mpi = MpiProtocol::none;
  std::string working_directory;
  std::string run_directory;
  Stage stage = {};
  Prolog prolog;
  EnvironmentChanges environment;  // common to all ranks
  EnvironmentRules environment_rules = {};
  // What libraries call the interface to use: name -> what stands before the interface's own name. Each
  // node's agent finds the interface; set only where the environment has no such name.
  EnvironmentChanges interface_variables;
  Limits limits;
  MemoryPolicy memory = {};               // of each rank
  std::optional<Elastic> elastic = {};    // unset: the job ends with its first lost rank
  std::optional<Parallel> parallel = {};  // unset: no process groups were asked for
  std::map<std::string, std::string>
      files;                 // name under the run directory -> content (a host file, the train section)
  std::vector<Argv> checks;  // commands that must succeed before any rank starts
  bool hypothetical_nodes = false;  // the nodes do not exist: the plan can be shown, not run
  std::vector<NodePlan> nodes;
  std::vector<RankPlan> ranks;              // by rank
  std::optional<int> rendezvous_port = {};  // for the rendezvous, which rank 0's program opens

  int world_size() const { return static_cast<int>(ranks.size()); }
  /// Whether nodes have something to do before their ranks may start.
  bool has_setup() const { return !prolog.empty() || !stage.empty(); }
};

// What one agent needs: the plan with only its own ranks in `ranks`, plus the shape of the whole.
struct NodeSlice {
  Plan plan;  // `nodes` is whole; `ranks` are this node's
  NodeIndex node;
  std::vector<int> node_of_rank;  // by rank; its JSON form is runs of [node, count]
  int world_size() const { return static_cast<int>(node_of_rank.size()); }
};

// Cuts a plan into its nodes' slices. What they share is worked out once, so that all of them together cost
// one pass over the ranks. The plan must outlive it.
class Slicer {
 public:
  explicit Slicer(const Plan& plan);
  NodeSlice slice_of(NodeIndex node) const;

 private:
  Plan common_;  // without ranks
  std::vector<int> node_of_rank_;
  std::vector<std::vector<const RankPlan*>> by_node_;
};

Json to_json(const Plan& plan);
Json to_json(const RankPlan& rank);
/// The same as of a plan, with an empty list of ranks.
Json json_without_ranks(const Plan& plan);
Result<Plan> plan_from_json(const Json& json);
Json to_json(const NodeSlice& slice);
Result<NodeSlice> slice_from_json(const Json& json);

std::string_view to_text(MpiProtocol protocol);
std::string_view to_text(ProcessModel model);

}  // namespace dlrun::plan
