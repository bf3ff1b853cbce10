// See step_trace.hpp.
#include "runtime/train/step_trace.hpp"

#include "src/base/file.hpp"
#include "src/base/host_name.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {

Result<void> StepTrace::before_step() {
  if (begun_++ == spec_.skip) {
    // An elastic run's ranks may be others at any moment: each has its own clock then.
    if (comm_.elastic() == nullptr) clock_ = TRY(clock_offset(comm_));
    if (comm_.elastic() == nullptr) TRY(comm_.barrier());
    trace_.start();
  }
  step_began_ = std::chrono::steady_clock::now();
  return {};
}

Result<void> StepTrace::after_step(std::uint64_t step) {
  if (!trace_.on()) return {};
  trace_.add({Trace::Track::training, fmt::format("step {}", step), "step", step_began_,
              std::chrono::steady_clock::now()});
  if (!first_) first_ = step;
  last_ = step;
  return begun_ == spec_.skip + spec_.steps ? finish() : Result<void>{};
}

Result<void> StepTrace::finish() {
  if (!trace_.on() && !first_ && comm_.rank() == 0)
    reporter_.note(fmt::format(
        "warning: there is no trace: this run had {} steps, and train.trace.skip is {}", begun_, spec_.skip));
  if (!trace_.on()) return {};
  const Json json = trace_json(trace_.stop(), {comm_.rank(), host_name(), clock_});
  const std::filesystem::path folder = folder_ / "trace";
  TRY(make_directories(folder, Access::shared));
  TRY(replace_file(folder / fmt::format("rank-{:05}.json", comm_.rank()), dlrun::to_text(json),
                   Durability::none));
  if (comm_.rank() == 0)
    reporter_.note(fmt::format("trace of steps {} to {}: {}/rank-*.json", *first_, *last_, folder.string()));
  return {};
}

}  // namespace dlrun::runtime
