// `qrsh -inherit` as a launcher inside a Grid Engine parallel job.
#pragma once

#include "schedulers/launch_command.hpp"
#include "schedulers/node_identity.hpp"

namespace dlrun {

/// `here`: the machine that we are on, whose agent is started without Grid Engine.
std::vector<LaunchCommand> gridengine_commands(const AgentsToLaunch& agents, const Environment& environment,
                                               const MachineNames& here);

PendingLauncher begin_gridengine_launcher(const Environment& environment);

}  // namespace dlrun
