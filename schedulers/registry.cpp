// The table of schedulers. It is explicit: the order is visible, and no backend can be lost by a linker.
// Inside a job of a scheduler that has no backend here, nothing is guessed: taking this machine alone would
// run smaller.
#include <array>

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

struct Mark {
  std::string_view scheduler, variable;
};

// What the jobs of schedulers without a backend can be told by.
constexpr std::array<Mark, 6> kWithoutBackend{{{"Slurm", "SLURM_JOB_ID"},
                                               {"PBS", "PBS_JOBID"},
                                               {"LSF", "LSB_JOBID"},
                                               {"Flux", "FLUX_JOB_ID"},
                                               {"Grid Engine", "PE_HOSTFILE"},
                                               {"OAR", "OAR_JOB_ID"}}};

Result<void> check_no_other(const Environment& environment) {
  for (const Mark& mark : kWithoutBackend)
    if (const auto value = environment.find(mark.variable))
      return fail(
          Error{.kind = ErrorKind::allocation,
                .what = fmt::format("this is a {} job ({}={}), and this version cannot read its allocation",
                                    mark.scheduler, mark.variable, *value),
                .where = {},
                .hint = "--allocation FILE names its nodes; --scheduler local takes this machine alone"});
  return {};
}

}  // namespace

std::vector<std::unique_ptr<Scheduler>> all_schedulers() {
  std::vector<std::unique_ptr<Scheduler>> out;
  out.push_back(make_local_scheduler());
  return out;
}

Result<Allocation> find_allocation(const Surroundings& surroundings, std::string_view wanted) {
  if (wanted == "auto") TRY(check_no_other(surroundings.environment));
  std::vector<std::string> names{"auto"};
  for (const auto& scheduler : all_schedulers()) {
    const std::string why = scheduler->inside(surroundings);
    if (wanted == scheduler->name() || (wanted == "auto" && !why.empty())) {
      Allocation found = TRY(scheduler->allocation(surroundings));
      if (wanted == "auto") found.evidence.insert(found.evidence.begin(), why);
      return found;
    }
    names.emplace_back(scheduler->name());
  }
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("scheduler '{}' is not known", wanted),
                    .where = {},
                    .hint = did_you_mean(wanted, names)});
}

}  // namespace dlrun
