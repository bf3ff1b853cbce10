#include "src/bench/point_job.hpp"

#include <algorithm>

#include "src/bench/axis_keys.hpp"

namespace dlrun::bench {
namespace {

using plan::Override;

// Trainings that share a folder of checkpoints would go on with each other's.
void add_checkpoints(const plan::JobSpec& spec, const std::filesystem::path& folder,
                     std::vector<Override>& overrides) {
  if (!spec.checkpoint.dir.empty())
    overrides.push_back(
        {"checkpoint.dir", (folder / "checkpoints").string(), "dlrun bench", Override::Reading::text});
}

Result<plan::JobSpec> with(const job::Request& whole, const std::vector<Override>& overrides) {
  plan::JobSpec base = *whole.spec;
  base.tree.set("bench", yaml::Node());
  return plan::override_job(base, whole.sources, overrides);
}

}  // namespace

int ranks_of_point(const plan::Plan& plan) {
  if (plan.framework != "builtin") return plan.world_size();
  return static_cast<int>(std::count_if(plan.ranks.begin(), plan.ranks.end(), [&](const auto& rank) {
    return rank.role == plan.ranks.front().role;
  }));
}

Result<job::Prepared> plan_point(const job::Request& whole, const plan::BenchPoint& point,
                                 const std::filesystem::path& folder) {
  const plan::JobSpec& spec = *whole.spec;
  std::vector<Override> overrides = measuring_overrides(*spec.bench, spec);
  add_checkpoints(spec, folder, overrides);
  for (Override& one : TRY(overrides_of(point, spec))) overrides.push_back(std::move(one));
  job::Request request = whole;
  request.spec = TRY(with(whole, overrides));
  request.run_directory = folder / "run";
  const Instant now = SystemClock().now();
  job::Prepared out = TRY(job::prepare(request, now));
  const auto batch = TRY(global_batch_of(point, out.spec, ranks_of_point(out.plan)));
  if (!batch) return out;
  overrides.push_back(*batch);
  request.spec = TRY(with(whole, overrides));
  return job::prepare(request, now);
}

}  // namespace dlrun::bench
