#include "src/bench/bench_folder.hpp"

#include <algorithm>

#include "src/base/file.hpp"
#include "src/bench/axis_keys.hpp"
#include "src/bench/collect.hpp"
#include "src/bench/point_job.hpp"
#include "src/bench/rate_lines.hpp"
#include "src/plan/frozen_job.hpp"
#include "src/run/checks.hpp"

namespace dlrun::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownPoints = 5;

Json value_of(const yaml::Node& node) {
  return yaml::to_json(node);
}

std::vector<Axis> axes_of(const plan::BenchSpec& spec, const std::vector<plan::BenchPoint>& points) {
  std::vector<Axis> out;
  for (const plan::BenchAxis& axis : spec.axes) {
    out.push_back({axis.key, {}});
    for (const yaml::Node& value : axis.values) out.back().values.push_back(value_of(value));
  }
  if (!spec.axes.empty()) return out;
  for (const plan::BenchPoint& point : points)
    for (const plan::BenchValue& value : point) {
      auto axis = std::find_if(out.begin(), out.end(), [&](const Axis& one) { return one.key == value.key; });
      if (axis == out.end()) axis = out.insert(out.end(), {value.key, {}});
      const Json json = value_of(value.value);
      if (std::find(axis->values.begin(), axis->values.end(), json) == axis->values.end())
        axis->values.push_back(json);
    }
  return out;
}

// Repeat after repeat, so that what changes over the hours affects all points alike.
std::vector<plan::BenchPoint> repeated(const plan::BenchSpec& spec) {
  const std::vector<plan::BenchPoint> once = plan::points_of(spec);
  std::vector<plan::BenchPoint> out;
  for (int repeat = 0; repeat < spec.repeats; ++repeat) out.insert(out.end(), once.begin(), once.end());
  return out;
}

Bench empty_bench(const plan::JobSpec& spec, const std::vector<plan::BenchPoint>& points, Instant now) {
  Bench out{
      .name = spec.name, .created = format_utc(now), .framework = spec.framework, .unit = spec.bench->unit};
  out.mode = spec.bench->epochs ? Mode::metrics : Mode::rate;
  const std::size_t once = points.size() / static_cast<std::size_t>(spec.bench->repeats);
  out.axes = axes_of(*spec.bench, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    Point point{.id = fmt::format("{:04}", i + 1), .repeat = static_cast<int>(i / once)};
    for (const plan::BenchValue& value : points[i])
      point.values.emplace_back(value.key, value_of(value.value));
    out.points.push_back(std::move(point));
  }
  return out;
}

Result<void> check_section(const plan::JobSpec& job) {
  const plan::BenchSpec& spec = *job.bench;
  TRY(plan::count_points(spec));
  for (const plan::BenchAxis& axis : spec.axes)
    for (const yaml::Node& value : axis.values) TRY(check_value({axis.key, value, axis.source}));
  for (const plan::BenchPoint& point : spec.points)
    for (const plan::BenchValue& value : point) TRY(check_value(value));
  if (!spec.rate.empty()) TRY(RatePattern::of(spec.rate, spec.rate_source));
  // Of a grid all points have the same keys.
  if (spec.points.empty()) return check_distinct(plan::points_of(spec).front(), job);
  for (const plan::BenchPoint& point : spec.points) TRY(check_distinct(point, job));
  return {};
}

struct Refused {
  const Point* point;
  Error error;
};

// Points that no allocation of this size can run are a mistake, and no cell of a table.
Result<void> check_refused(const std::vector<Refused>& refused, std::size_t all) {
  std::vector<const Refused*> too_large;
  for (const Refused& one : refused)
    if (one.error.kind == ErrorKind::allocation) too_large.push_back(&one);
  if (refused.size() == all && !refused.empty() && too_large.size() < all) return fail(refused.front().error);
  if (too_large.empty()) return {};
  Error out{.kind = ErrorKind::allocation,
            .what = fmt::format("{} of {} points do not fit into the allocation", too_large.size(), all),
            .where = {},
            .hint = "request a larger allocation, or give fewer values",
            .also = {}};
  for (std::size_t i = 0; i < std::min(too_large.size(), kShownPoints); ++i)
    out.also.push_back(fmt::format("{}: {}", text_of(*too_large[i]->point), too_large[i]->error.what));
  return fail(std::move(out));
}

// Plans each point once, whatever its repeats. The first one that can be planned is checked like a run.
Result<void> plan_points(OpenBench& open) {
  const std::size_t once = open.points.size() / static_cast<std::size_t>(open.spec().repeats);
  std::vector<Refused> refused;
  bool is_checked = false;
  for (std::size_t i = 0; i < once; ++i) {
    Point& point = open.bench.points[i];
    const auto planned = plan_point(open.request, open.points[i], point_folder(open.folder, point.id));
    if (!planned) {
      refused.push_back({&point, planned.error()});
      for (std::size_t same = i; same < open.points.size(); same += once) {
        open.bench.points[same].status = PointStatus::failed;
        open.bench.points[same].why = planned.error().what;
      }
      continue;
    }
    if (!is_checked) TRY(job::run_plan_checks(*planned, open.request.environment));
    is_checked = true;
    open.bench.hosts = std::max(open.bench.hosts, planned->plan.nodes.size());
    for (std::size_t same = i; same < open.points.size(); same += once)
      open.bench.points[same].ranks = ranks_of_point(planned->plan);
  }
  return check_refused(refused, once);
}

Result<void> write_job(const OpenBench& open) {
  const std::string frozen =
      TRY(plan::freeze_job(*open.request.spec, open.request.sources.job_file, open.request.here));
  return replace_file(open.folder / "spec.json", frozen, Durability::synced);
}

}  // namespace

fs::path new_bench_folder(const fs::path& here, const plan::JobSpec& spec, Instant now) {
  return here / "runs" / fmt::format("bench-{}-{}", spec.name, job::new_job_id(now));
}

std::string free_run_directory(const fs::path& folder, const std::string& id) {
  std::error_code problem;
  std::string out = fmt::format("points/{}/run", id);
  for (int next = 2; fs::exists(folder / out, problem); ++next)
    out = fmt::format("points/{}/run-{}", id, next);
  return out;
}

Result<OpenBench> plan_bench(job::Request request, const fs::path& folder, Instant now) {
  OpenBench open{.request = std::move(request), .folder = fs::absolute(folder), .points = {}, .bench = {}};
  TRY(check_section(*open.request.spec));
  open.request.allocation = TRY(job::allocation_of(open.request));
  open.points = repeated(open.spec());
  open.bench = empty_bench(*open.request.spec, open.points, now);
  TRY(plan_points(open));
  return open;
}

Result<void> create(const OpenBench& open) {
  std::error_code problem;
  if (fs::exists(open.folder / "bench.json", problem))
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("{} has a benchmark already", open.folder.string()),
                      .where = {},
                      .hint = fmt::format("dlrun bench --resume {} continues it", open.folder.string()),
                      .also = {}});
  TRY(make_directories(open.folder.parent_path(), Access::shared));
  TRY(make_directories(open.folder, Access::owner_only));
  TRY(write_job(open));
  return write_bench(open.bench, open.folder);
}

Result<OpenBench> open_bench(job::Request request, const fs::path& folder) {
  OpenBench open{.request = std::move(request), .folder = fs::absolute(folder), .points = {}, .bench = {}};
  open.bench = TRY(read_bench(open.folder));
  if (!open.request.spec->bench)
    return bad_input((open.folder / "spec.json").string(), "it has no section 'bench'");
  if (!open.bench.tune.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("{} is a tuning: which candidates are left depends on its rounds",
                                          open.folder.string()),
                      .where = {},
                      .hint = fmt::format("start it again: dlrun bench --tune {} JOB", open.bench.tune),
                      .also = {}});
  open.points = repeated(open.spec());
  if (open.points.size() == open.bench.points.size()) return open;
  return bad_input((open.folder / "bench.json").string(),
                   fmt::format("it has {} points, and spec.json asks for {}", open.bench.points.size(),
                               open.points.size()));
}

Result<void> prepare_to_resume(OpenBench& open) {
  open.request.allocation = TRY(job::allocation_of(open.request));
  std::error_code problem;
  for (Point& point : open.bench.points) {
    if (is_over(point.status)) continue;
    if (fs::exists(point_folder(open.folder, point.id) / "submission.json", problem))
      return fail(
          Error{.kind = ErrorKind::usage,
                .what = fmt::format("the points of {} are separate jobs", open.folder.string()),
                .where = {},
                .hint = fmt::format("dlrun bench --collect {} reads their results", open.folder.string()),
                .also = {}});
    if (point.status != PointStatus::running) continue;
    point.status = PointStatus::pending;
    if (fs::exists(open.folder / point.run / "record.json", problem))
      collect(point, open.bench, open.spec(), open.folder, EndedBy::itself);
  }
  return {};
}

Result<void> write_point_job(const OpenBench& open, std::size_t index, const plan::JobSpec& spec) {
  const fs::path folder = point_folder(open.folder, open.bench.points.at(index).id);
  TRY(make_directories(folder, Access::owner_only));
  const std::string frozen = TRY(plan::freeze_job(spec, open.request.sources.job_file, open.request.here));
  return replace_file(folder / "spec.json", frozen, Durability::none);
}

}  // namespace dlrun::bench
