// The table of schedulers. It is explicit: the order is visible, and no backend can be lost by a linker.
// The first one that we are inside of wins; the others whose marks are there too are told in the evidence.
#include <array>

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

// A job of one scheduler with another one's variables: a wrapper (Slurm's PBS look), or left over from a
// shell that the job was submitted from.
void note_others(const std::vector<std::unique_ptr<Scheduler>>& schedulers, const Surroundings& surroundings,
                 Allocation& found) {
  for (const auto& other : schedulers) {
    if (other->name() == found.scheduler || other->name() == "local") continue;
    if (const std::string why = other->inside(surroundings); !why.empty())
      found.evidence.push_back(
          fmt::format("{} too ({}): not taken; --scheduler {} would", why, other->name(), other->name()));
  }
}

}  // namespace

// A host file is named explicitly, so it wins. Slurm first of the others: its wrappers set the variables of
// PBS as well. Torque before PBS, whose variables it shares.
std::vector<std::unique_ptr<Scheduler>> all_schedulers() {
  std::vector<std::unique_ptr<Scheduler>> out;
  out.push_back(make_hostfile_scheduler());
  out.push_back(make_slurm_scheduler());
  out.push_back(make_torque_scheduler());
  out.push_back(make_pbs_scheduler());
  out.push_back(make_lsf_scheduler());
  out.push_back(make_flux_scheduler());
  out.push_back(make_gridengine_scheduler());
  out.push_back(make_oar_scheduler());
  out.push_back(make_cobalt_scheduler());
  out.push_back(make_local_scheduler());
  return out;
}

std::string scheduler_title(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> titles{
      {{"slurm", "Slurm"},
       {"torque", "Torque"},
       {"pbs", "PBS"},
       {"lsf", "LSF"},
       {"flux", "Flux"},
       {"gridengine", "Grid Engine"},
       {"oar", "OAR"},
       {"cobalt", "Cobalt"}}};
  for (const auto& [known, title] : titles)
    if (known == name) return std::string(title);
  return std::string(name);
}

Result<Allocation> find_allocation(const Surroundings& surroundings, std::string_view wanted) {
  std::vector<std::string> names{"auto"};
  const auto schedulers = all_schedulers();
  if (const std::string named = schedulers.front()->inside(surroundings);
      !named.empty() && wanted != "auto" && wanted != schedulers.front()->name())
    return fail(
        Error{.kind = ErrorKind::usage,
              .what = fmt::format("--scheduler {} and {} both say where the nodes come from", wanted, named),
              .where = {},
              .hint = "give one of them"});
  for (const auto& scheduler : schedulers) {
    const std::string why = scheduler->inside(surroundings);
    if (wanted == scheduler->name() || (wanted == "auto" && !why.empty())) {
      Allocation found = TRY(scheduler->allocation(surroundings));
      if (wanted == "auto") found.evidence.insert(found.evidence.begin(), why);
      note_others(schedulers, surroundings, found);
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
