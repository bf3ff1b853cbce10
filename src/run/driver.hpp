// The head's driver: the event loop, the clock, the launcher, the agents' streams and processes, the signals.
// It tells the head what happens and does what the head wants done; it decides nothing about the run. When it
// returns, every agent is gone, and with it every process of the run (or the outcome says which node could
// not confirm that).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/launch/launcher.hpp"
#include "src/plan/node_inventory.hpp"
#include "src/plan/ports.hpp"
#include "src/process/file_writer.hpp"
#include "src/record/event_log.hpp"
#include "src/record/outcome.hpp"
#include "src/run/after_failure.hpp"
#include "src/run/collectives.hpp"
#include "src/run/head_events.hpp"
#include "src/run/head_status_file.hpp"
#include "src/run/kept_agents.hpp"
#include "src/run/run_status.hpp"
#include "src/run/walltime_watch.hpp"

namespace dlrun::job {

/// A plan for the agents, and for people the same with its real nodes, where each rank has an agent of its
/// own.
struct AttemptPlan {
  PlanPtr plan, shown;
};

struct Replanned {
  AttemptPlan plans;
  FileWriter::Work write;  // writes the plan down
};

/// What prologs left, by host: in memory alone, since environments have secrets.
using KeptPrologs = std::map<std::string, protocol::from_agent::PrologLeft>;

// A node that joins while the run is on.
struct JoinWanted {
  NodeIndex node;
  std::vector<std::string> hosts;  // of all nodes, by their numbers
  plan::NodeInventory inventory;
  int shards = 0;  // of the training
  std::vector<Rank> in_place_of = {};
};

struct DriverParts {
  std::unique_ptr<launch::Launcher> launcher;  // used up: it lives as long as the loop that it is part of
  FileWriter& writer;                          // of the run directory's files
  EventLog& events;
  plan::SecretValues& secrets;  // those that a prolog reads are added
  RunStatus& status;
  HeadStatusFile& status_file;     // what others see of the run
  const Environment& environment;  // of the job, for the agents on other nodes
  // Make the plan anew without these ports, and with what the nodes have told; the nodes and the ranks stay.
  std::function<Result<Replanned>(const plan::TakenPorts&)> plan_without;
  std::function<Result<Replanned>(const plan::Inventories&)> plan_with;
  // The plan with the ranks of a node that joins, and a launcher for a plan of it alone.
  std::function<Result<Replanned>(const JoinWanted&)> plan_join;
  std::function<Result<std::unique_ptr<launch::Launcher>>(const plan::Plan&)> make_launcher;
  std::vector<std::string> hosts = {};  // of the allocation
  Collectives collectives = Collectives::by_head;
  plan::NodeQuestions questions = {};  // what the scheduler did not tell
  WalltimeSettings walltime = {};
  std::string scheduler_job = {};       // "Slurm, job 17"; empty outside of a scheduler's job
  std::optional<Rank> input_rank = {};  // that reads our standard input
  KeptPrologs* prologs = nullptr;       // of attempts before, and for those that may follow; null: none may
  KeptAgents& kept;                     // of attempts before, and for one that may follow
  AfterFailure agents = AfterFailure::end;
};

/// Runs one attempt of the plan. An Error where nothing could be started at all; anything later, also that
/// not every node got an agent, is in the Outcome.
Result<Outcome> run_attempt(AttemptPlan plans, DriverParts parts);

}  // namespace dlrun::job
