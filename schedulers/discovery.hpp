// What a scheduler's functions may look at when they are asked "are we inside one of your jobs" and "which
// nodes may we use": variables, programs, clock and GPUs, all as parameters, so that a test gives them a
// recorded world.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "schedulers/gpus/gpus.hpp"
#include "schedulers/node_identity.hpp"
#include "src/base/environment.hpp"
#include "src/process/command.hpp"

namespace dlrun {

// The nodes that the user names on the command line. "-" as a file is standard input.
struct NamedHosts {
  std::optional<std::filesystem::path> hostfile = {};          // --hostfile
  std::optional<std::filesystem::path> private_hostfile = {};  // --private-hostfile
  std::string host_words = {};                                 // --hosts a:2,b:2
};

// What a scheduler sees of the world besides the files that its variables name.
struct DiscoveryContext {
  const Environment& environment;
  const CommandRunner& commands;  // squeue, qstat, ...: absent, slow and failing ones are normal
  const Clock& clock;
  std::function<FoundGpus()> driver_gpus;  // of this machine; called only where they are needed
  NamedHosts named = {};
  std::function<MachineNames()> machine_names = this_machine;
};

}  // namespace dlrun
