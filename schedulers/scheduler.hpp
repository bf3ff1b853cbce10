// Scheduler: everything dlrun knows about one scheduler, as one row of functions and data. Each scheduler has
// a folder that fills in its row; registry.cpp is the table of the rows, and the only one: --scheduler,
// --via, the submit commands, the walltime watch, the agents' environment and the planner all read it. A
// function that is not set means that the scheduler has no such thing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/allocation.hpp"
#include "schedulers/discovery.hpp"
#include "schedulers/end_time.hpp"
#include "schedulers/launch_command.hpp"
#include "schedulers/submission.hpp"

namespace dlrun {

/// Whether the slots of an allocation are cores that the job was granted, or something else (tasks).
enum class SlotUnit { tasks, cores };

/// Who divides the slots among the nodes where only a total was asked for.
enum class SlotDivision { by_user, by_scheduler };

/// How long before the walltime ends a run must be over: a share of its length between these two.
struct DeadlineMargins {
  Seconds least{4}, most{30};
};

/// What tells that this machine is a login node of the scheduler: a program alone says little, since
/// packages install it on laptops too.
struct SubmitHost {
  std::string_view variable = {};
  std::vector<std::string> files = {};
};

/// The size of a job and of its parts, for the variables that a scheduler would give its ranks.
struct StepShape {
  int ranks = 1;
  std::vector<int> ranks_of_node;
};
struct RankPlace {
  int rank = 0, local_rank = 0, node = 0;
};

using VariableMap = std::map<std::string, std::string>;

/// What becomes of the scheduler's variables on the way from the job to its ranks.
struct VariableRules {
  std::vector<std::string_view> prefixes = {};  // of all its variables; a submitted job may name them
  std::vector<std::string_view> names = {};     // those that have no prefix

  // What its jobs find in their environment, by the beginnings of names. A job that is submitted to another
  // scheduler from inside such a job must not see them, but for those that tell where its servers are.
  std::vector<std::string_view> drop_for_submit = {}, keep_for_submit = {};

  // Descriptions of one node: ranks get their own node's value, never the one of the head's node.
  std::vector<std::string_view> node_local = {};
  // Others that differ from node to node or from rank to rank: no job file can name their value.
  std::vector<std::string_view> per_node = {};
  // Of the step that the agents are: a rank that sees them takes itself for one of that step.
  std::vector<std::string_view> agent_step = {};
  // Of a step whose tasks are the ranks themselves (launch.mpi: native): these they need.
  std::vector<std::string_view> rank_step = {};

  std::string_view node_name = {};  // the scheduler's name of the node
  std::string_view task = {};       // a task's index in its step
  std::string_view step_size = {};  // and how many there are

  // Variables that programs expect inside such a job: what all ranks have, and what each one has.
  VariableMap (*of_step)(const StepShape&) = nullptr;
  VariableMap (*of_rank)(const RankPlace&) = nullptr;

  // How often the job was started again; or, where nothing counts that, whether it is a batch job: of
  // interactive ones people may run several commands, each from a terminal of its own.
  std::string_view restart_count = {};
  bool (*is_batch_job)(const Environment&) = nullptr;

  // For the scheduler's own programs, which PATH may lack.
  Environment (*for_programs)(Environment) = nullptr;
  // Warnings by SIGUSR1 and SIGUSR2 go to every process where this one is set, and must not end them.
  std::string_view warns_by_user_signals = {};
};

struct Scheduler {
  std::string_view name;                       // as in --scheduler, launch.via and allocation.json
  std::string_view title;                      // as people write it: "Grid Engine"
  std::vector<std::string_view> aliases = {};  // former names, each for one release

  /// Why we are inside one of its jobs ("SLURM_JOB_ID=7"); empty where we are not.
  std::string (*detect)(const DiscoveryContext&) = nullptr;
  Result<Allocation> (*allocation)(const DiscoveryContext&) = nullptr;
  SlotUnit slot_unit = SlotUnit::tasks;
  SlotDivision slot_division = SlotDivision::by_user;

  /// Submitting, states, cancelling and requeueing.
  std::unique_ptr<Submission> (*submission)() = nullptr;
  std::string_view submit_program = {};
  /// Whether that program is this scheduler's own, where several have one of this name.
  bool (*owns_submit_program)(const ProgramText& text) = nullptr;
  SubmitHost submit_host = {};

  /// The name of the cluster that this machine belongs to; empty where nothing tells.
  std::string (*cluster_name)(const Environment&) = nullptr;

  /// When a running job ends, in the order to try them.
  std::vector<EndQuestion> (*end_questions)(const std::string& job_id) = nullptr;
  DeadlineMargins margins = {};

  /// Its command that starts agents on the nodes of the job that we are in.
  PendingLauncher (*launcher)(const Environment&) = nullptr;
  /// For launch.mpi: native, whether that command can start the ranks of an MPI.
  std::vector<AgentPer> launcher_starts = {AgentPer::node};

  VariableRules variables = {};
};

/// All schedulers, in the order in which they are asked; the last one is this machine, which always answers.
const std::vector<Scheduler>& all_schedulers();

/// The scheduler of this name or former name; nullptr where there is none.
const Scheduler* find_scheduler(std::string_view name);

/// The scheduler of an allocation; this machine's row for one that a file made up.
const Scheduler& scheduler_of(const Allocation& allocation);

/// What people call it: "Slurm" for slurm, "Grid Engine" for gridengine.
std::string scheduler_title(std::string_view name);

/// The allocation that we are in: of the scheduler called `wanted`, or for "auto" of the first that detects
/// one of its jobs.
Result<Allocation> find_allocation(const DiscoveryContext& context, std::string_view wanted);

/// The scheduler called `wanted`, or for "auto" the one whose submit command is on PATH. Several of them are
/// an Error: it is not guessed which one is meant.
Result<const Scheduler*> find_submit_scheduler(std::string_view wanted, const Environment& environment,
                                               const CommandRunner& commands);
Result<std::unique_ptr<Submission>> find_submission(std::string_view wanted, const Environment& environment,
                                                    const CommandRunner& commands);

/// "--scheduler: sge is now called gridengine"; empty where `name` is no former name.
std::string renamed_scheduler(std::string_view name, std::string_view flag);

/// When a job of this scheduler ends; empty where it does not tell.
std::vector<EndQuestion> end_questions(std::string_view scheduler, const std::string& job_id);

/// The names that launch.via may have beside "auto": our own launchers and those of the schedulers.
std::vector<std::string> launcher_names();

}  // namespace dlrun
