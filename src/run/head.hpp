// The head: starts one agent a node, gives each its slice, carries messages between them, and watches them to
// the end with the same Supervisor that the agents use over their ranks. It knows no scheduler and no
// framework. When it returns, every agent is gone, and with it every process of the run (or the outcome says
// which node could not confirm that).
#pragma once

#include <functional>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"
#include "src/launch/launcher.hpp"
#include "src/plan/node_inventory.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/ports.hpp"
#include "src/record/event_log.hpp"
#include "src/record/outcome.hpp"
#include "src/run/run_status.hpp"
#include "src/run/walltime_watch.hpp"

namespace dlrun::job {

struct HeadParts {
  std::unique_ptr<launch::Launcher> launcher;  // used up: it lives as long as the loop that it is part of
  FileWriter& writer;                          // of the run directory's files
  EventLog& events;
  plan::SecretValues& secrets;  // those that a prolog reads are added
  RunStatus& status;
  const Environment& environment;  // of the job, for the agents on other nodes
  const plan::Plan& shown;         // the plan with its real nodes, where each rank has an agent of its own
  // Makes the plan anew, in its place, without these ports; the nodes and the ranks stay. What it gives
  // writes that plan down. Empty: it cannot.
  std::function<Result<FileWriter::Work>(const plan::TakenPorts&)> plan_without = {};
  // What the scheduler did not tell is asked of the nodes, once all have their agents, and the plan is made
  // anew with the answers in the same way; the nodes and the ranks stay.
  plan::NodeQuestions questions = {};
  std::function<Result<FileWriter::Work>(const plan::Inventories&)> plan_with = {};
  WalltimeSettings walltime = {};
  std::string scheduler_job = {};       // "Slurm, job 17"; empty outside of a scheduler's job
  std::optional<Rank> input_rank = {};  // that reads our standard input
};

// Runs one attempt of the plan. An Error where nothing could be started at all; anything later, also that not
// every node got an agent, is in the Outcome.
Result<Outcome> run_attempt(const plan::Plan& plan, HeadParts parts);

}  // namespace dlrun::job
