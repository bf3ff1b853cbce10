// Scheduler: one backend's answers to "are we inside one of its jobs" and "which nodes may we use". One file
// a scheduler implements it; registry.cpp lists them in the order in which they are asked. Everything that a
// backend may look at is in its Surroundings, so that a test gives it a recorded world. Submitting and states
// will join this interface with the commands that need them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/allocation.hpp"
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

// What a backend sees of the world besides the files that its variables name.
struct Surroundings {
  const Environment& environment;
  const CommandRunner& commands;  // squeue, qstat, ...: absent, slow and failing ones are normal
  const Clock& clock;
  std::function<FoundGpus()> driver_gpus;  // this machine's; asked only by who needs them
  NamedHosts named = {};
  std::function<MachineNames()> machine_names = this_machine;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual std::string_view name() const = 0;
  // Why we are inside one of its jobs ("SLURM_JOB_ID=7"); empty where we are not.
  virtual std::string inside(const Surroundings& surroundings) const = 0;
  virtual Result<Allocation> allocation(const Surroundings& surroundings) const = 0;
};

std::unique_ptr<Scheduler> make_local_scheduler();
std::unique_ptr<Scheduler> make_hostfile_scheduler();
std::unique_ptr<Scheduler> make_slurm_scheduler();
std::unique_ptr<Scheduler> make_torque_scheduler();
std::unique_ptr<Scheduler> make_pbs_scheduler();
std::unique_ptr<Scheduler> make_lsf_scheduler();
std::unique_ptr<Scheduler> make_flux_scheduler();
std::unique_ptr<Scheduler> make_gridengine_scheduler();
std::unique_ptr<Scheduler> make_oar_scheduler();
std::unique_ptr<Scheduler> make_cobalt_scheduler();

// What people call it: "Slurm" for slurm, "Grid Engine" for gridengine.
std::string scheduler_title(std::string_view name);

// All backends, in the order in which they are asked; the last one is this machine, which always answers.
std::vector<std::unique_ptr<Scheduler>> all_schedulers();

// The allocation we stand in: of the scheduler called `wanted`, or for "auto" of the first that we are inside
// of.
Result<Allocation> find_allocation(const Surroundings& surroundings, std::string_view wanted);

}  // namespace dlrun
