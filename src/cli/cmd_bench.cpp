#include "src/cli/cmd_bench.hpp"

#include <algorithm>

#include "src/base/exit_code.hpp"
#include "src/bench/axis_keys.hpp"
#include "src/bench/run_bench.hpp"
#include "src/bench/sweep_watch.hpp"
#include "src/bench/tune.hpp"
#include "src/cli/bench_printer.hpp"
#include "src/cli/bench_request.hpp"
#include "src/cli/usage_error.hpp"
#include "src/cli/world_of.hpp"
#include "src/plan/role_tasks.hpp"
#include "src/record/head_status.hpp"
#include "src/run/single_start.hpp"

namespace dlrun::cli {
namespace {

std::string check_tuned(const std::string& text) {
  const auto known = bench::check_tuned(text);
  if (known) return {};
  return fmt::format("{}; {}", known.error().what, known.error().hint);
}

constexpr FlagRow<BenchCommand> kBenchFlags[] = {
    {{.name = "--axis",
      .value = "KEY=V1,V2,...",
      .help = "values of an axis: nodes, batch, threads, ..., or any key of the job file",
      .choices = "nodes= tasks-per-node= gpus= batch= global-batch= servers= placement= threads= algorithm= "
                 "bucket= dtype= data= tensor-parallel= pipeline-parallel="},
     &BenchCommand::axes},
    {{.name = "--resume",
      .value = "DIR",
      .help = "run the points that are left of the benchmark in this folder"},
     &BenchCommand::resume},
    {{.name = "--collect",
      .value = "DIR",
      .help = "read the results so far of the jobs of dlrun submit --sweep",
      .excludes = "--resume"},
     &BenchCommand::collect},
    {{.name = "-w,--watch",
      .help =
          "with --collect: continue until all points have ended, and stop trainings as --stop-early says"},
     &BenchCommand::watch},
    {{.name = "--tune",
      .value = "WHAT",
      .help = "find the best value of threads, bucket, batch, memory, or of any axis that --axis gives",
      .choices = "threads bucket algorithm batch memory",
      .excludes = "--resume",
      .check = check_tuned},
     &BenchCommand::tune},
};

constexpr FlagRow<JobOptions> kSectionFlags[] = {
    {{.name = "--repeats", .value = "N", .help = "measure each point N times"}, Key{"bench.repeats"}},
    {{.name = "--warmup", .value = "N", .help = "steps before the timed ones (default: 10)"},
     Key{"bench.warmup"}},
    {{.name = "--steps", .value = "N", .help = "timed steps (default: 100)"}, Key{"bench.steps"}},
    {{.name = "--epochs", .value = "N", .help = "train N epochs at each point, and keep the final metrics"},
     Key{"bench.epochs"}},
    {{.name = "--stop-early",
      .value = "METRIC",
      .help = "with --epochs: stop trainings that are not in the better half, by test_accuracy, "
              "min:test_loss, ..."},
     Key{"bench.stop-early"}},
    {{.name = "--rate",
      .value = "REGEX",
      .help = "regular expression for the rate in the output of a rank, as 'images/s: ([0-9.]+)'"},
     Key{"bench.rate"}},
    {{.name = "--unit", .value = "UNIT", .help = "unit of the rate, as images/s"}, Key{"bench.unit"}},
    {{.name = "--limit", .value = "TIME", .help = "time limit of a point (default: 30min)"},
     Key{"bench.limit"}},
    {{.name = "--time",
      .value = "TIME",
      .help = "stop a program after this time, and use what it has reported"},
     Key{"bench.time"}},
    {{.name = "--concurrent",
      .value = "N",
      .help = "points at the same time (default: as many as fit on the nodes)"},
     Key{"bench.concurrent"}},
};

Result<bench::OpenBench> open_at(const std::string& folder, const BenchCommand& options,
                                 const Context& context) {
  return bench::open_bench(TRY(resumed_request(options.job, folder, context.environment)), folder);
}

Result<bench::OpenBench> open_to_run(const BenchCommand& options, const Context& context) {
  if (!options.resume.empty()) {
    bench::OpenBench out = TRY(open_at(options.resume, options, context));
    TRY(prepare_to_resume(out));
    return out;
  }
  job::Request request = TRY(bench_request(options.job, options.axes, context.environment));
  const Instant now = SystemClock().now();
  const auto folder =
      request.run_directory.value_or(bench::new_bench_folder(request.here, *request.spec, now));
  bench::OpenBench out = TRY(bench::plan_bench(std::move(request), folder, now));
  TRY(create(out));
  return out;
}

// Points that fail are cells of the table. Where no point was measured, the first failure is the answer.
int exit_code_of(const bench::Bench& results, const bench::BenchEnd& end) {
  if (end.signal) return 128 + *end.signal;
  if (end.at_walltime) return to_int(ExitCode::again);
  const bool any = std::any_of(results.points.begin(), results.points.end(), [](const bench::Point& point) {
    return point.status == bench::PointStatus::done;
  });
  return any ? to_int(ExitCode::done) : 1;
}

void say_end(const bench::OpenBench& open, const bench::BenchEnd& end, Console& console) {
  console.say(
      fmt::format("dlrun: {}; results: {}", summary_of(open.bench), (open.folder / "bench.json").string()));
  if (end.signal || end.at_walltime)
    console.say(fmt::format("dlrun: to continue: dlrun bench --resume {}", open.folder.string()));
}

// The table, or what else is wanted of the results. `code`: of the benchmark itself, which counts first.
Result<int> show_results(const BenchCommand& options, const bench::OpenBench& open, int code,
                         const Context& context) {
  const Json document = to_json(open.bench);
  if (context.common.json && options.report.compare.empty() && options.report.predict.empty()) {
    TRY(context.console.data(to_pretty_text(document)));
    return code;
  }
  const auto results = TRY(bench::results::parse_bench(document, (open.folder / "bench.json").string()));
  const int shown = TRY(show_bench(options.report, results, context));
  return code != 0 ? code : shown;
}

// Until every point that has a job is over; ^C ends the watch, and the jobs go on.
Result<void> watch_sweep(bench::OpenBench& open, const Context& context) {
  const WorldOf world_of(context);
  BenchPrinter printer(context.console);
  bench::SweepWatch watch(open);
  for (;;) {
    for (const std::size_t index : TRY(watch.update())) printer.ended(open.bench, open.bench.points[index]);
    if (watch.is_over()) break;
    printer.waiting(standing_of(open.bench));
    world_of.world().pause(job::kHeadStatusInterval);
  }
  context.console.clear_status_line();
  return {};
}

Result<void> collect_once(bench::OpenBench& open, const Context& context) {
  TRY(collect_sweep(open));
  for (const bench::Point& point : open.bench.points)
    context.console.say("dlrun: " + line_of(open.bench, point));
  return {};
}

Result<int> show_collected(const BenchCommand& options, const Context& context) {
  bench::OpenBench opened = TRY(open_at(options.collect, options, context));
  TRY(options.watch ? watch_sweep(opened, context) : collect_once(opened, context));
  say_end(opened, {}, context.console);
  if (const std::size_t count = count_not_submitted(opened.bench); count > 0)
    context.console.say(
        fmt::format("dlrun: {} not submitted; once the jobs of the others have ended, dlrun bench --resume "
                    "{} runs the rest",
                    plan::count_text(count, "point"), opened.folder.string()));
  return show_results(options, opened, to_int(ExitCode::done), context);
}

// The curve, the best value, and the lines that set it.
Result<void> show_tuned(const bench::OpenBench& open, std::size_t best, Console& console) {
  for (const std::size_t index : last_rounds(open.bench))
    console.say(fmt::format("dlrun: {}{}", line_of(open.bench, open.bench.points[index]),
                            index == best ? "  <- best" : ""));
  const plan::BenchValue& value = open.points[best].front();
  console.out(bench::job_lines(TRY(bench::job_key_of(value, *open.request.spec)),
                               open.bench.points[best].values.front().second));
  if (value.key != "threads") return {};
  const auto remembered = remember_threads(open, best);
  console.say(remembered ? "dlrun: " + *remembered
                         : "dlrun: warning: not remembered, since " + remembered.error().what);
  return {};
}

// One axis is tuned at a time: another one's values would be left out.
Result<void> check_tuned_alone(const BenchCommand& options) {
  for (const std::string& axis : options.axes)
    if (const std::string key = axis.substr(0, axis.find('=')); key != options.tune)
      return fail(Error{
          .kind = ErrorKind::usage,
          .what = fmt::format("--tune {} tries the values of one axis, and --axis {} is another",
                              options.tune, key),
          .hint = fmt::format("leave --tune out for a table of both, or tune {} in a second call", key)});
  return {};
}

Result<int> run_tuning(const BenchCommand& options, const Context& context) {
  TRY(check_tuned_alone(options));
  job::Request request = TRY(bench_request(options.job, options.axes, context.environment));
  const Instant now = SystemClock().now();
  const auto folder =
      request.run_directory.value_or(bench::new_bench_folder(request.here, *request.spec, now));
  bench::OpenBench open = TRY(bench::plan_tuning(std::move(request), options.tune, folder, now));
  TRY(create(open));
  if (context.common.json) context.console.send_out_to_err();
  BenchPrinter printer(context.console);
  const bench::Tuning tuned = TRY(bench::run_tuning(open, printer));
  context.console.clear_status_line();
  if (tuned.best) TRY(show_tuned(open, *tuned.best, context.console));
  if (context.common.json) TRY(context.console.data(to_pretty_text(to_json(open.bench))));
  return exit_code_of(open.bench, tuned.end);
}

}  // namespace

const char* const BenchCommand::kExamples = R"(Examples:
  dlrun bench train.yaml --axis nodes=1,2,4             images/s on 1, 2 and 4 nodes of this allocation
  dlrun bench train.yaml --axis batch=32,64,128 --repeats 3
  dlrun bench train.yaml --axis train.optimizer.lr=0.1,0.05 --epochs 5    the final metrics of trainings
  dlrun bench --axis tasks-per-node=1,2,4 --rate 'images/s: ([0-9.]+)' -- python train.py
  dlrun bench --resume runs/bench-train-20261130-1      go on with the points that are left
  dlrun bench --collect runs/bench-train-20261130-2 --watch    the jobs of dlrun submit --sweep, to their end)";

void BenchCommand::add(Arguments& arguments) {
  add_job(arguments, job);
  arguments.flags<BenchCommand>(kBenchFlags, *this);
  arguments.flags<JobOptions>(kSectionFlags, job);
  arguments.flags<BenchReportOptions>(bench_report_flags(), report);
}

Result<void> BenchCommand::finish(const ExtraArguments& extra) {
  job.program = extra.of_program;
  TRY(check_together(report, "bench"));
  if (!tune.empty() && is_any_set(report))
    return fail(usage_error("bench", "--tune prints the lines that set the best value, and no table",
                            "dlrun bench-report DIR shows the results of its folder"));
  if (watch && collect.empty())
    return fail(
        usage_error("bench", "--watch needs the folder of a sweep", "dlrun bench --collect DIR --watch"));
  const bool has_folder = !resume.empty() || !collect.empty();
  if (!has_folder || (job.job_file.empty() && axes.empty() && job.program.empty())) return {};
  return fail(usage_error("bench", "the folder of a benchmark has its job and axes",
                          "remove the job and the axes, or the folder"));
}

Result<int> BenchCommand::run(const Context& context) {
  if (!report.compare.empty()) TRY(bench::results::read_bench(report.compare));  // before hours are spent
  if (!collect.empty()) return show_collected(*this, context);
  TRY(job::check_single_start(context.environment));
  if (!tune.empty()) return run_tuning(*this, context);
  bench::OpenBench opened = TRY(open_to_run(*this, context));
  BenchPrinter printer(context.console);
  printer.note(fmt::format("{} points in {}", opened.bench.points.size(), opened.folder.string()));
  const bench::BenchEnd end = TRY(bench::run_bench(opened, printer));
  context.console.clear_status_line();
  say_end(opened, end, context.console);
  return show_results(*this, opened, exit_code_of(opened.bench, end), context);
}

}  // namespace dlrun::cli
