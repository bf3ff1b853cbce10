// A sweep: the points of a benchmark as batch jobs of their own, each with the nodes that it needs. At most
// so many run at a time: a job waits for the end of the one that many places before it. What they came to is
// collected from their run directories, at any time, from any machine that sees the folder.
#pragma once

#include <functional>

#include "src/bench/bench_folder.hpp"
#include "src/chain/submit.hpp"

namespace dlrun::bench {

struct SweepJob {
  std::size_t index;  // of the point
  job::SubmissionPlan plan;
};

/// The jobs of all points that can run, in order. `flags` are those of `dlrun run` inside them.
Result<std::vector<SweepJob>> plan_sweep(const OpenBench& open, const Argv& flags,
                                         const CommandRunner& commands);

/// Submits them; `submitted` is called with each job's id. An Error says how many were.
Result<void> submit_sweep(OpenBench& open, std::vector<SweepJob> jobs, const CommandRunner& commands,
                          const std::function<void(const SweepJob&, const std::string& id)>& submitted);

/// Reads what has come of the points since, and writes it down.
Result<void> collect_sweep(OpenBench& open);

/// Keeps why a point that runs is asked to end, for whoever collects it.
Result<void> note_stopped_early(const std::filesystem::path& folder, const Point& point,
                                const std::string& why);

/// Points that no job is for, once they were collected: the submission ended before them.
std::size_t count_not_submitted(const Bench& bench);

}  // namespace dlrun::bench
