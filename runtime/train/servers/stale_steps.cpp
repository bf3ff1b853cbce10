// See stale_steps.hpp.
#include "runtime/train/servers/stale_steps.hpp"

#include <array>
#include <utility>

namespace dlrun::runtime {

void StaleSteps::add(const StepTotals& own) {
  ++steps_;
  own_.totals.add(own.totals);
  own_.requests = own.requests;  // what was asked for is repeated until all are told
}

Result<StepTotals> StaleSteps::barrier() {
  std::array<float, totals_slots> all{};
  store(std::exchange(own_, {}), all);
  steps_ = 0;
  TRY(workers_.allreduce(all));
  TRY(servers_.fetch());
  return load(all);
}

}  // namespace dlrun::runtime
