// What `dlrun submit --chain auto` finds out before it submits: how the job was measured, what its chain will
// need, and which settings follow from that. It prints nothing and submits nothing; --probe starts a run
// here.
#pragma once

#include "src/chain/measured_runs.hpp"
#include "src/chain/planner.hpp"
#include "src/chain/submit.hpp"
#include "src/cli/cmd_submit.hpp"

namespace dlrun::cli {

struct ChainPrediction {
  job::MeasuredRun run;
  job::ChainQuestion question;
  job::ChainForecast forecast;
  int max_links = 1;  // some more than are needed: links get preempted
  // The same for each size of a range of nodes that was measured; the chain above is as if all links had the
  // slowest of them.
  struct Size {
    job::MeasuredRun run;
    job::ChainForecast forecast;
  };
  std::vector<Size> sizes = {};
};

// `plan`: the job as it would be submitted now.
Result<ChainPrediction> predict_chain(const SubmitCommand& options, const job::SubmissionPlan& plan,
                                      const Context& context);
/// What makes the job the one that was predicted.
std::vector<plan::Override> predicted_overrides(const ChainPrediction& prediction,
                                                const job::SubmissionPlan& plan);

Json to_json(const ChainPrediction& prediction, Instant now);
std::vector<std::string> lines_of(const ChainPrediction& prediction, Instant now);

}  // namespace dlrun::cli
