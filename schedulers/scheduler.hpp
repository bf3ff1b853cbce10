// Scheduler: one backend's answers to "are we inside one of its jobs" and "which nodes may we use". One file
// a scheduler implements it; registry.cpp lists them in the order in which they are asked. Submitting, states
// and end times will join this interface with the schedulers that have them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "schedulers/allocation.hpp"
#include "src/base/environment.hpp"

namespace dlrun {

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual std::string_view name() const = 0;
  // Why we are inside one of its jobs ("SLURM_JOB_ID=7"); empty where we are not.
  virtual std::string inside(const Environment& environment) const = 0;
  virtual Result<Allocation> allocation(const Environment& environment) const = 0;
};

std::unique_ptr<Scheduler> make_local_scheduler();

// All backends, in the order in which they are asked; the last one is this machine, which always answers.
std::vector<std::unique_ptr<Scheduler>> all_schedulers();

// The allocation we stand in: of the scheduler called `wanted`, or for "auto" of the first that we are inside
// of.
Result<Allocation> find_allocation(const Environment& environment, std::string_view wanted);

}  // namespace dlrun
