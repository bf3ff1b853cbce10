// Tuning: the best value of one axis, whatever key of the job it is, by measurement. Successive halving: all
// candidates take a few steps, the better half of them twice as many, until one is left; so most of the time
// goes to those that are close. A candidate that fails leaves the race. The points of all rounds are in
// bench.json, the round as the repeat.
#pragma once

#include "src/bench/run_bench.hpp"

namespace dlrun::bench {

// Those that have usual candidates, or are listed for people.
enum class Tuned { threads, bucket, algorithm, batch, memory };
inline constexpr auto kTuned = enum_names<Tuned>({{Tuned::threads, "threads"},
                                                  {Tuned::bucket, "bucket"},
                                                  {Tuned::algorithm, "algorithm"},
                                                  {Tuned::batch, "batch"},
                                                  {Tuned::memory, "memory"}});

/// The usual candidates. `cores` is what a rank has, `batch` what the job says. Empty: the user must name
/// them.
std::vector<std::string> candidates(Tuned what, int cores, int batch);

/// How many steps each round takes, so that the last one takes `steps`.
std::vector<std::uint64_t> rounds_of(std::size_t candidates, std::uint64_t steps);

/// The better half of these points, by rate, the best first; only those that were measured.
std::vector<std::size_t> better_half(const Bench& bench, std::vector<std::size_t> points);

/// An Error (usage) where there is no such axis, or it has no lines of a job file.
Result<void> check_tuned(const std::string& axis);

/// The job with this axis alone; its values are the section's, or the usual candidates.
Result<OpenBench> plan_tuning(job::Request request, const std::string& axis,
                              const std::filesystem::path& folder, Instant now);

struct Tuning {
  BenchEnd end;
  std::optional<std::size_t> best;  // a point of the last round; unset: stopped, or nothing was measured
};
Result<Tuning> run_tuning(OpenBench& open, BenchStatus& status);

/// The last measurement of each candidate, by value in the order of the axis.
std::vector<std::size_t> last_rounds(const Bench& bench);

/// The lines for a job file that set this value of this key.
std::string job_lines(const std::string& key, const Json& value);

/// Remembers the threads for the processors of this point's run. An Error where its record does not tell
/// them, or no run told their model: a run of less than a second ends before the nodes have told it.
Result<std::string> remember_threads(const OpenBench& open, std::size_t best);

}  // namespace dlrun::bench
