// See pipeline_schedule.hpp.
#include "runtime/train/pipeline_schedule.hpp"

#include <algorithm>

namespace dlrun::runtime {

std::vector<PipelineStep> one_forward_one_backward(const StageRank& rank, int micro_batches) {
  using Pass = PipelineStep::Pass;
  const int ahead = std::min(rank.stages - 1 - rank.stage, micro_batches);
  // As many are under way as forwards are ahead, and the one at hand.
  const auto place = [ahead](int micro_batch) {
    return ahead == 0 ? std::nullopt : std::optional(static_cast<std::size_t>(micro_batch % (ahead + 1)));
  };
  std::vector<PipelineStep> out;
  for (int number = 0; number < ahead; ++number) out.push_back({Pass::forward, number, place(number)});
  for (int number = 0; number < micro_batches; ++number) {
    if (const int next = number + ahead; next < micro_batches)
      out.push_back({Pass::forward, next, place(next)});
    out.push_back({Pass::backward, number, place(number)});
  }
  return out;
}

int places_of(const StageRank& rank, int micro_batches) {
  return std::min(rank.stages - rank.stage, micro_batches);
}

double pipeline_bubble(int stages, int micro_batches) {
  return static_cast<double>(stages - 1) / micro_batches;
}

}  // namespace dlrun::runtime
