// Containers: the command line that runs a rank's command inside the job's image, one dialect per engine. It
// is part of the plan, so that what would be run can be read. It pulls no image and starts nothing.
#pragma once

#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

// What the command needs from around the container.
struct ContainerUse {
  std::vector<std::string> folders;  // that must be the same inside: the working and the run directory
  std::string working_directory;
  std::string host;   // where it runs
  bool gpus = false;  // it has some
  std::optional<GpuVendor> gpu_vendor = {};
  std::vector<std::string> variables;  // that it must see, for engines that pass only what they are told
  std::vector<std::string> copies;     // those that have a copy: set_over_image()
};

// An Error where the job asks for what its engine cannot do: a relative mount, MPICH's ranks under podman.
Result<void> check_container(const JobSpec& spec, MpiProtocol mpi);

// Variables of an image win over those of the job under some engines. For these, `changes` gets a copy of
// each variable under the name by which the engine sets it inside after the image's own. A secret gets no
// copy.
void set_over_image(const Container& container, const EnvironmentRules& rules, EnvironmentChanges& changes);

Argv in_container(const Container& container, const std::filesystem::path& base, const ContainerUse& use,
                  const Argv& command);

}  // namespace dlrun::plan
