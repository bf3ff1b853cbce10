// `flux exec` as a launcher: it starts an agent beside the brokers of the Flux instance that we are in.
#pragma once

#include "schedulers/launch_command.hpp"

namespace dlrun {

/// `brokers` are the hosts of the instance, by broker rank. An Error names hosts that are none of them.
Result<LaunchCommand> flux_command(const AgentsToLaunch& agents, const std::vector<HostName>& brokers,
                                   const Environment& environment);

PendingLauncher begin_flux_launcher(const Environment& environment);

}  // namespace dlrun
