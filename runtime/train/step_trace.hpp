// StepTrace: which steps of a run are traced, and where the trace goes. The ranks compare their clocks just
// before the first of these steps, and write their files after the last one, or at the end of the run.
#pragma once

#include <filesystem>
#include <optional>

#include "runtime/train/report/reporter.hpp"
#include "runtime/train/trace_file.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

class StepTrace {
 public:
  /// `folder`: of the run; the files go into trace/ there.
  StepTrace(const TraceSpec& spec, std::filesystem::path folder, Communicator& comm, Reporter& reporter)
      : spec_(spec), folder_(std::move(folder)), comm_(comm), reporter_(reporter) {}

  Trace& trace() { return trace_; }
  /// Before each step that the run takes, from its first one.
  Result<void> before_step();
  /// After it: one span for all of the step with this number.
  Result<void> after_step(std::uint64_t step);
  /// At the end of the run, of what was traced until then.
  Result<void> finish();

 private:
  TraceSpec spec_;
  std::filesystem::path folder_;
  Communicator& comm_;
  Reporter& reporter_;
  Trace trace_;
  ClockOffset clock_;
  std::uint64_t begun_ = 0;  // steps
  Ticks step_began_{};
  std::optional<std::uint64_t> first_, last_;  // of those that were traced
};

}  // namespace dlrun::runtime
