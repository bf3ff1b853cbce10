// PBS's task manager as a launcher: OpenPBS has pbs_tmrsh HOST, Torque pbsdsh -h HOST, with the host as the
// node file spells it.
#pragma once

#include "schedulers/launch_command.hpp"

namespace dlrun {

enum class PbsStarter { pbs_tmrsh, pbsdsh };
std::vector<LaunchCommand> pbs_commands(const AgentsToLaunch& agents, PbsStarter starter,
                                        const Environment& environment);

PendingLauncher begin_pbs_launcher(const Environment& environment);

}  // namespace dlrun
