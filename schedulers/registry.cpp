// The table of schedulers. It is explicit: the order is visible, and no backend can be lost by a linker.
#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"

namespace dlrun {

std::vector<std::unique_ptr<Scheduler>> all_schedulers() {
  std::vector<std::unique_ptr<Scheduler>> out;
  out.push_back(make_local_scheduler());
  return out;
}

Result<Allocation> find_allocation(const Environment& environment, std::string_view wanted) {
  std::vector<std::string> names{"auto"};
  for (const auto& scheduler : all_schedulers()) {
    const std::string why = scheduler->inside(environment);
    if (wanted == scheduler->name() || (wanted == "auto" && !why.empty())) {
      Allocation found = TRY(scheduler->allocation(environment));
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
