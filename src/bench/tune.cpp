#include "src/bench/tune.hpp"

#include <algorithm>
#include <thread>

#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/bench/axis_keys.hpp"
#include "src/run/tuned_threads.hpp"

namespace dlrun::bench {
namespace {

constexpr std::uint64_t kMinSteps = 5;

// Powers of two, all cores, and a few less: some systems want cores for themselves.
std::vector<std::string> thread_counts(int cores) {
  std::vector<int> counts;
  for (int count = 1; count < cores; count *= 2) counts.push_back(count);
  if (cores >= 16) counts.push_back(cores - cores / 16);
  counts.push_back(cores);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<std::string> out;
  for (const int count : counts) out.push_back(std::to_string(count));
  return out;
}

std::vector<std::string> batches(int batch) {
  std::vector<std::string> out;
  for (const int size : {batch / 4, batch / 2, batch, 2 * batch, 4 * batch, 8 * batch})
    if (size >= 1 && (out.empty() || out.back() != std::to_string(size))) out.push_back(std::to_string(size));
  return out;
}

// The cores of a rank: those of its node, divided; this machine's where the scheduler does not tell.
int cores_of_rank(const job::Request& request) {
  const Allocation& allocation = *request.allocation;
  const int cores = allocation.nodes.empty() ? 0 : allocation.nodes.front().cpus.value_or(0);
  const int known = cores > 0 ? cores : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (request.spec->resources.cpus_per_task) return *request.spec->resources.cpus_per_task;
  return std::max(1, known / std::max(1, request.spec->resources.tasks_per_node.value_or(1)));
}

int batch_of(const plan::JobSpec& spec) {
  const yaml::Node* const batch = spec.train.find("batch");
  const auto size = batch == nullptr ? Result<std::int64_t>(64) : parse_integer(batch->scalar, 1, 1 << 20);
  return static_cast<int>(size.value_or(64));
}

Result<plan::BenchAxis> axis_of(const job::Request& request, const std::string& key) {
  for (const plan::BenchAxis& axis : request.spec->bench->axes)
    if (axis.key == key) return axis;
  plan::BenchAxis out{.key = key, .values = {}, .source = "--tune " + key};
  if (const auto what = kTuned.value(key))
    for (const std::string& value : candidates(*what, cores_of_rank(request), batch_of(*request.spec)))
      out.values.push_back(yaml::scalar(value, out.source));
  if (!out.values.empty()) return out;
  return fail(Error{
      .kind = ErrorKind::usage,
      .what = fmt::format("--tune {} needs candidates", key),
      .where = {},
      .hint = fmt::format("add --axis {}=A,B,...{}", key,
                          key == "algorithm" ? "; train.allreduce.algorithm in dlrun-train(1) has them" : ""),
      .also = {}});
}

// Points of the next round, behind those that are there.
std::vector<std::size_t> add_round(OpenBench& open, const std::vector<std::size_t>& chosen, int round) {
  std::vector<std::size_t> out;
  for (const std::size_t index : chosen) {
    Point point = open.bench.points[index];
    out.push_back(open.bench.points.size());
    open.bench.points.push_back({.id = fmt::format("{:04}", open.bench.points.size() + 1),
                                 .values = std::move(point.values),
                                 .repeat = round,
                                 .ranks = point.ranks});
    open.points.push_back(open.points[index]);
  }
  return out;
}

// The keys above a value of the job file, and what they end in.
std::string nested(const std::vector<std::string>& keys, const std::string& value) {
  std::string out, indent;
  for (std::size_t i = 0; i < keys.size(); ++i, indent += "  ")
    out += indent + keys[i] + (i + 1 == keys.size() ? ": " + value : ":\n");
  return out;
}

}  // namespace

std::vector<std::string> candidates(Tuned what, int cores, int batch) {
  switch (what) {
    case Tuned::threads:
      return thread_counts(cores);
    case Tuned::bucket:
      return {"256KiB", "1MiB", "4MiB", "8MiB", "16MiB", "64MiB"};
    case Tuned::batch:
      return batches(batch);
    case Tuned::memory:
      return {"system", "local", "interleave"};
    case Tuned::algorithm:
      return {};
  }
  return {};
}

std::vector<std::uint64_t> rounds_of(std::size_t candidates, std::uint64_t steps) {
  std::vector<std::uint64_t> out{steps};
  for (std::size_t left = candidates; left > 2; left = (left + 1) / 2)
    out.insert(out.begin(), std::max(std::min(kMinSteps, steps), out.front() / 2));
  return out;
}

std::vector<std::size_t> better_half(const Bench& bench, std::vector<std::size_t> points) {
  const std::size_t half = std::max<std::size_t>(1, (points.size() + 1) / 2);
  const auto rate = [&](std::size_t index) { return bench.points[index].figures.rate; };
  std::erase_if(points, [&](std::size_t index) { return !rate(index); });
  std::stable_sort(points.begin(), points.end(),
                   [&](std::size_t one, std::size_t other) { return *rate(one) > *rate(other); });
  if (points.size() > half) points.resize(half);
  return points;
}

Result<void> check_tuned(const std::string& axis) {
  if (axis == "data" || axis == "global-batch")
    return fail(
        Error{.kind = ErrorKind::usage,
              .what = fmt::format("the axis '{}' cannot be tuned: it is not one key of the job file", axis),
              .where = {},
              .hint = axis == "data" ? "measure it: --axis data=real,synthetic" : "tune batch",
              .also = {}});
  auto known = check_axis(axis, {});
  if (!known) known.error().kind = ErrorKind::usage;
  return known;
}

Result<OpenBench> plan_tuning(job::Request request, const std::string& axis,
                              const std::filesystem::path& folder, Instant now) {
  request.allocation = TRY(job::allocation_of(request));
  plan::BenchSpec& spec = *request.spec->bench;
  spec.axes = {TRY(axis_of(request, axis))};
  spec.points.clear();
  spec.epochs.reset();
  spec.repeats = 1;
  spec.concurrent = 1;  // what runs beside a candidate would change its rate
  request.spec->tree.set("bench", plan::to_node(spec));
  OpenBench open = TRY(plan_bench(std::move(request), folder, now));
  open.bench.tune = axis;
  return open;
}

Result<Tuning> run_tuning(OpenBench& open, BenchStatus& status) {
  const auto rounds = rounds_of(open.points.size(), open.spec().steps.value_or(100));
  std::vector<std::size_t> racing(open.points.size());
  for (std::size_t i = 0; i < racing.size(); ++i) racing[i] = i;
  Tuning out;
  for (std::size_t round = 0; round < rounds.size() && !racing.empty(); ++round) {
    open.request.spec->bench->steps = rounds[round];
    if (round > 0) racing = add_round(open, racing, static_cast<int>(round));
    status.note(fmt::format("round {} of {}: {} candidates, {} steps each", round + 1, rounds.size(),
                            racing.size(), rounds[round]));
    out.end = TRY(run_bench(open, status));
    if (out.end.signal || out.end.at_walltime) return out;
    racing = better_half(open.bench, racing);
  }
  if (!racing.empty()) out.best = racing.front();
  return out;
}

std::vector<std::size_t> last_rounds(const Bench& bench) {
  std::vector<std::size_t> out;
  for (const Json& value : bench.axes.front().values) {
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < bench.points.size(); ++i)
      if (bench.points[i].values.front().second == value && is_over(bench.points[i].status)) last = i;
    if (last) out.push_back(*last);
  }
  return out;
}

// A variable is a text.
std::string job_lines(const std::string& key, const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : to_text(value);
  return nested(split(key, '.'), key.starts_with("environment.set.") ? '"' + text + '"' : text);
}

Result<std::string> remember_threads(const OpenBench& open, std::size_t best) {
  const Point& point = open.bench.points.at(best);
  const std::string file = (open.folder / point.run / "record.json").string();
  const Json record = TRY(parse_json(TRY(read_regular_file(file, kMaxJsonBytes)), file));
  const auto attempts = TRY(field<std::vector<Json>>(record, "attempts", file));
  const auto ranks = attempts.empty() ? Result<std::vector<Json>>(std::vector<Json>{})
                                      : field<std::vector<Json>>(attempts.back(), "ranks", file);
  const auto processors = ranks && !ranks->empty()
                              ? field<std::vector<int>>(ranks->front(), "processors", file)
                              : Result<std::vector<int>>(std::vector<int>{});
  if (!processors || processors->empty())
    return bad_input(file, "the record of its run does not tell the processors of the ranks");
  if (!open.bench.cpu.is_string())
    return bad_input(file, "no run lasted long enough to tell the model of the processors");
  const auto cores = static_cast<int>(processors->size());
  const int threads = TRY(field<int>(Json{{"threads", point.values.front().second}}, "threads", file));
  const std::string model = open.bench.cpu.get<std::string>();
  TRY(job::TunedThreads(open.request.environment).remember(model, cores, threads));
  return fmt::format("remembered: {} threads for a rank with {} cores of {}", threads, cores, model);
}

}  // namespace dlrun::bench
