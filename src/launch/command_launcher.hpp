// CommandLauncher: brings agents to the nodes by commands of the site (srun, mpiexec, pbsdsh, ...); the
// agents connect back to the head. Which commands those are, a scheduler or an MPI says (CommandTraits); what
// runs, watches and ends them is here. The token is in a file of the run directory that only its owner can
// read, or, where a launcher passes its environment on, in that: then no file system need be shared, and
// agents need not wait for a standard input, which srun gives to the first when it has reached the last.
#pragma once

#include <memory>

#include "schedulers/launch_command.hpp"
#include "src/launch/launcher.hpp"

namespace dlrun::launch {

/// `settings`: how many commands may be at work whose agents have not all come yet, and what becomes of
/// nodes without dlrun.
std::unique_ptr<Launcher> make_command_launcher(CommandTraits traits, const LaunchSettings& settings);

/// The agents of a plan's nodes, each started as `agent`.
AgentsToLaunch agents_of(const plan::Plan& plan, Argv agent, const Environment& environment);

}  // namespace dlrun::launch
