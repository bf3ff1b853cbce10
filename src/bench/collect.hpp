// collect(): what the run of a point came to, from its run directory: the status, the rate and the other
// figures. Read where the run has ended, by whomever: this process, an earlier one that was killed, or
// another job.
#pragma once

#include <filesystem>

#include "src/bench/bench.hpp"
#include "src/plan/bench_spec.hpp"

namespace dlrun::bench {

/// Why a point's run ended.
enum class EndedBy {
  itself,
  limit,      // bench.limit
  time,       // bench.time: what it measured so far counts
  goal,       // bench.stop-early: it is not in the better half
  stop,       // the benchmark was stopped: the point is tried again
  scheduler,  // seen later: the walltime of its own job
};

/// The point with what its run directory tells. Without a record it is failed, with the last error in
/// `output` as the reason.
void collect(Point& point, Bench& bench, const plan::BenchSpec& spec, const std::filesystem::path& folder,
             EndedBy by);

/// The folder of a point, below the bench's.
std::filesystem::path point_folder(const std::filesystem::path& folder, const std::string& id);

}  // namespace dlrun::bench
