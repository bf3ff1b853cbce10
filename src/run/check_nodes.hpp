// check_nodes(): starts agents on nodes, has them checked (checker.hpp), and ends the agents. It starts no
// rank and leaves no process. A node without an agent is a finding of the report and no error.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "schedulers/allocation.hpp"
#include "src/health/report.hpp"
#include "src/launch/launcher.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::job {

/// All nodes of the allocation, and no ranks. `folder` exists, and gets what launchers leave for agents.
plan::Plan plan_to_check(const Allocation& allocation, const plan::LaunchSpec& launch,
                         const std::string& folder);

/// How agents get onto the nodes of a job.
launch::LaunchSettings launch_settings(const plan::LaunchSpec& spec, const Allocation& allocation,
                                       const Environment& environment,
                                       const std::optional<launch::BegunLauncher>& begun);

struct NodeChecks {
  const plan::Plan& plan;
  std::unique_ptr<launch::Launcher> launcher;
  health::Level level = health::Level::quick;
  std::string directory = {};                          // whose file system is tried
  std::function<void(const std::string&)> phase = {};  // how far it is
};

/// Unset where a stop signal came meanwhile, which waits to be taken; stop signals are held. An Error where
/// no agent could be started at all.
Result<std::optional<health::Report>> check_nodes(NodeChecks checks);

}  // namespace dlrun::job
