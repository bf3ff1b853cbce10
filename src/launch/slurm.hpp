// The srun command of the Slurm way, as a pure function of what is known about the job, so that the flags can
// be tested without a cluster.
#pragma once

#include <optional>
#include <string_view>

#include "src/launch/engine.hpp"

namespace dlrun::launch {

struct SlurmVersion {
  int major = 0, minor = 0;
};
// "slurm 22.05.8", "slurm-wlm 23.11.4".
std::optional<SlurmVersion> parse_slurm_version(std::string_view text);

EngineCommand srun_command(const plan::Plan& plan, const AgentCommand& agent, const SlurmVersion& version,
                           const Environment& environment);

}  // namespace dlrun::launch
