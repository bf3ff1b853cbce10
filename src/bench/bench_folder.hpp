// The folder of a benchmark: bench.json, the job as it was asked for (spec.json), and a folder per point with
// its job, its allocation, its run directory and what its dlrun printed. A benchmark is made once, with every
// point planned, so that a wrong key is found before anything runs; it is opened again to go on, or to be
// collected.
#pragma once

#include "src/bench/bench.hpp"
#include "src/run/prepare.hpp"

namespace dlrun::bench {

struct OpenBench {
  job::Request request;  // the job with its section `bench`, and the allocation
  std::filesystem::path folder;
  std::vector<plan::BenchPoint> points;  // what each of bench.points sets
  Bench bench;
  const plan::BenchSpec& spec() const { return *request.spec->bench; }
};

/// Plans all points and refuses what can never run. `request` has the job. Nothing is written.
Result<OpenBench> plan_bench(job::Request request, const std::filesystem::path& folder, Instant now);

/// Writes the folder of a benchmark that was planned.
Result<void> create(const OpenBench& open);

/// The benchmark of a folder, as its file tells it.
Result<OpenBench> open_bench(job::Request request, const std::filesystem::path& folder);

/// To go on with it here: points that were running are collected where their runs have ended, and are pending
/// else. An Error where its points are jobs of their own.
Result<void> prepare_to_resume(OpenBench& open);

/// Writes the job of a point into its folder, from where `dlrun run --spec` reads it.
Result<void> write_point_job(const OpenBench& open, std::size_t index, const plan::JobSpec& spec);

/// The name of a run directory below the point's folder that is not there yet.
std::string free_run_directory(const std::filesystem::path& folder, const std::string& id);

/// runs/bench-NAME-ID below `here`.
std::filesystem::path new_bench_folder(const std::filesystem::path& here, const plan::JobSpec& spec,
                                       Instant now);

}  // namespace dlrun::bench
