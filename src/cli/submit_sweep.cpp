#include "src/cli/submit_sweep.hpp"

#include <utility>

#include "src/base/quote.hpp"
#include "src/bench/sweep.hpp"
#include "src/cli/bench_request.hpp"
#include "src/cli/submit_flags.hpp"

namespace dlrun::cli {
namespace {

// No allocation is there yet: the points are planned on nodes that are made up, also inside a job, and
// --scheduler names the one to submit to.
Result<bench::OpenBench> plan_it(const SubmitCommand& options, const Context& context) {
  job::Request request = TRY(bench_request(options.job, options.axes, context.environment));
  request.sources.scheduler_variables = plan::SchedulerVariables::may_come;
  request.missing_nodes = job::MissingNodes::invent;
  std::string scheduler = std::exchange(request.scheduler, "local");
  const Instant now = SystemClock().now();
  const auto folder =
      request.run_directory.value_or(bench::new_bench_folder(request.here, *request.spec, now));
  request.run_directory.reset();
  bench::OpenBench open = TRY(bench::plan_bench(std::move(request), folder, now));
  open.request.scheduler = std::move(scheduler);
  return open;
}

// Each point has a run directory of its own.
Argv flags_of(JobOptions job, const CommonOptions& common) {
  job.run_dir.clear();
  return forwarded_flags(job, common);
}

Result<int> show(const bench::OpenBench& open, const std::vector<bench::SweepJob>& jobs, Console& console) {
  for (const bench::SweepJob& job : jobs) TRY(console.data(job.plan.script));
  for (const bench::SweepJob& job : jobs)
    console.say(fmt::format("dlrun: {} would be submitted by: {}", text_of(open.bench.points[job.index]),
                            shell_join(job.plan.command)));
  return 0;
}

}  // namespace

Result<int> run_sweep(const SubmitCommand& options, const Context& context) {
  bench::OpenBench open = TRY(plan_it(options, context));
  const SystemCommands commands;
  std::vector<bench::SweepJob> jobs = TRY(plan_sweep(open, flags_of(options.job, context.common), commands));
  if (options.dry_run) return show(open, jobs, context.console);
  TRY(create(open));
  Json elements = Json::array();
  std::string ids;
  TRY(submit_sweep(open, std::move(jobs), commands, [&](const bench::SweepJob& job, const std::string& id) {
    const bench::Point& point = open.bench.points[job.index];
    context.console.say(
        fmt::format("dlrun: submitted {} job {}: {}", job.plan.scheduler->name(), id, text_of(point)));
    elements.push_back({{"point", point.id}, {"job_id", id}});
    ids += id + "\n";
  }));
  context.console.say(fmt::format("dlrun: results: dlrun bench --collect {}", open.folder.string()));
  if (open.spec().stop_early)
    context.console.say(fmt::format(
        "dlrun: dlrun bench --collect {} --watch stops trainings that fall behind", open.folder.string()));
  const Json document{
      {"schema", "dlrun.submission/1"}, {"bench", open.folder.string()}, {"elements", std::move(elements)}};
  TRY(context.console.data(context.common.json ? to_pretty_text(document) : ids));
  return 0;
}

}  // namespace dlrun::cli
