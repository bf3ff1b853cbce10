#include "schedulers/user_signals.hpp"

#include "schedulers/scheduler.hpp"

namespace dlrun {

UserSignals user_signals_in(const Environment& environment) {
  for (const Scheduler& scheduler : all_schedulers()) {
    const std::string_view mark = scheduler.variables.warns_by_user_signals;
    if (!mark.empty() && environment.find(mark)) return UserSignals::ignored;
  }
  return UserSignals::end_it;
}

}  // namespace dlrun
