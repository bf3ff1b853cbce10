// blaunch as a launcher: one command starts an agent on each host of the LSF job that we are in.
#pragma once

#include "schedulers/launch_command.hpp"

namespace dlrun {

LaunchCommand lsf_command(const AgentsToLaunch& agents, const Environment& environment);

PendingLauncher begin_lsf_launcher(const Environment& environment);

}  // namespace dlrun
