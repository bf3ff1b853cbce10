#include "src/bench/sweep.hpp"

#include <algorithm>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/bench/collect.hpp"
#include "src/bench/point_job.hpp"

namespace dlrun::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNotSubmitted = "not submitted";
constexpr std::size_t kMaxReason = 1 << 12;

fs::path stop_note(const fs::path& folder, const Point& point) {
  return point_folder(folder, point.id) / "stopped-early.txt";
}

std::string run_of(const Point& point) {
  return fmt::format("points/{}/run", point.id);
}

Result<SweepJob> plan_job(const OpenBench& open, std::size_t index, Argv flags,
                          const CommandRunner& commands) {
  const Point& point = open.bench.points[index];
  const fs::path folder = point_folder(open.folder, point.id);
  job::Request request = open.request;
  request.spec = TRY(plan_point(open.request, open.points[index], folder)).spec;
  request.allocation.reset();
  flags.insert(flags.begin(), "--run-dir=" + (open.folder / run_of(point)).string());
  return SweepJob{index, TRY(job::plan_submission(request, flags, folder, commands))};
}

// Of this process or, where the job was submitted by hand, of none: the point waits.
void read_point(const fs::path& folder, const plan::BenchSpec& spec, Point& point, Bench& bench) {
  std::error_code problem;
  if (point.run.empty()) point.run = run_of(point);
  if (fs::exists(folder / point.run / "record.json", problem)) {
    const auto why = read_regular_file(stop_note(folder, point), kMaxReason);
    collect(point, bench, spec, folder, why ? EndedBy::goal : EndedBy::scheduler);
    if (point.status == PointStatus::stopped_early) point.why = *why;
    return;
  }
  point.why.clear();
  if (fs::exists(folder / point.run, problem)) {
    point.status = PointStatus::running;
    return;
  }
  point.run.clear();
  if (!fs::exists(point_folder(folder, point.id) / "submission.json", problem)) point.why = kNotSubmitted;
}

}  // namespace

Result<std::vector<SweepJob>> plan_sweep(const OpenBench& open, const Argv& flags,
                                         const CommandRunner& commands) {
  std::vector<SweepJob> out;
  for (std::size_t i = 0; i < open.bench.points.size(); ++i)
    if (open.bench.points[i].status == PointStatus::pending)
      out.push_back(TRY(plan_job(open, i, flags, commands)));
  return out;
}

Result<void> submit_sweep(OpenBench& open, std::vector<SweepJob> jobs, const CommandRunner& commands,
                          const std::function<void(const SweepJob&, const std::string& id)>& submitted) {
  const auto at_once =
      static_cast<std::size_t>(open.spec().concurrent.value_or(static_cast<int>(jobs.size())));
  std::vector<std::string> ids;
  for (SweepJob& job : jobs) {
    if (ids.size() >= at_once) job.plan.after = ids[ids.size() - at_once];
    auto id = job::submit(job.plan, open.request.environment, commands);
    if (!id) {
      id.error().also.push_back(
          fmt::format("{0} of {1} points are submitted; dlrun bench --collect {2} reads them; once they have "
                      "ended, dlrun bench --resume {2} runs the others",
                      ids.size(), jobs.size(), open.folder.string()));
      return fail(std::move(id).error());
    }
    ids.push_back(*id);
    submitted(job, *id);
  }
  return {};
}

Result<void> collect_sweep(OpenBench& open) {
  for (Point& point : open.bench.points)
    if (!is_over(point.status)) read_point(open.folder, open.spec(), point, open.bench);
  return write_bench(open.bench, open.folder);
}

Result<void> note_stopped_early(const fs::path& folder, const Point& point, const std::string& why) {
  return replace_file(stop_note(folder, point), why, Durability::none);
}

std::size_t count_not_submitted(const Bench& bench) {
  return static_cast<std::size_t>(std::count_if(
      bench.points.begin(), bench.points.end(),
      [](const Point& point) { return point.status == PointStatus::pending && point.why == kNotSubmitted; }));
}

}  // namespace dlrun::bench
