#include "src/cli/chain_forecast.hpp"

#include <algorithm>

#include "src/base/enum_names.hpp"
#include "src/base/file.hpp"
#include "src/base/units.hpp"

namespace dlrun::cli {
namespace {

using Rule = job::ChainForecast::Rule;

tl::unexpected<Error> usage(std::string what, std::string hint) {
  return fail(Error{
      .kind = ErrorKind::usage, .what = std::move(what), .where = {}, .hint = std::move(hint), .also = {}});
}

// Runs the job here for so long; told to end, it saves, and so measures a checkpoint too.
Result<std::filesystem::path> probe(const SubmitCommand& options, const job::SubmissionPlan& plan,
                                    const Context& context) {
  const Seconds time = TRY(parse_duration(options.probe));
  if (plan.spec.framework != "builtin")
    return usage(
        fmt::format("--probe is for framework: builtin, not for {}", plan.spec.framework),
        "dlrun run the job for a while where it can write checkpoints, and give its run: --measured RUN");
  const Installation installation = TRY(this_installation());
  std::filesystem::path folder(plan.folder);
  folder.replace_filename("probe-" + folder.filename().string());
  const std::string spec = folder.string() + ".spec.json";
  TRY(make_directories(folder.parent_path(), Access::shared));
  TRY(job::write_frozen_job(spec, plan.frozen_job));
  Argv argv{"timeout",
            "--signal=TERM",
            "--kill-after=60",
            fmt::format("{}", time.count()),
            (installation.bin / "dlrun").string(),
            "run",
            "--spec=" + spec,
            "--run-dir=" + folder.string(),
            "--set=checkpoint.dir=" + (folder / "checkpoints").string()};
  if (!options.job.framework_dir.empty()) argv.push_back("--framework-dir=" + options.job.framework_dir);
  context.console.say(fmt::format("dlrun: measuring the job here for {}", format_duration(time)));
  const CommandOutput said =
      TRY(run_command({.argv = argv, .environment = context.environment, .limit = time + Seconds(120)}));
  std::error_code problem;
  std::filesystem::remove(spec, problem);
  if (std::filesystem::exists(folder / "record.json", problem)) return folder;
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("the probe left no record ({})", said.status.text()),
                    .where = folder.string(),
                    .hint = "dlrun run the job for a while, and give its run: --measured RUN",
                    .also = {said.err.substr(0, 2000)}});
}

Result<std::vector<job::MeasuredRun>> measure(const SubmitCommand& options, const job::SubmissionPlan& plan,
                                              const Context& context) {
  std::error_code problem;
  const std::filesystem::path here = std::filesystem::current_path(problem);
  const std::filesystem::path named =
      options.probe.empty() ? std::filesystem::path(options.measured) : TRY(probe(options, plan, context));
  return job::find_measured_sizes(here, named, {plan.name, plan.spec.framework, plan.ranks, plan.min_ranks});
}

// --epochs, else what the job file says, else what the earlier run was to do.
Result<std::int64_t> steps_of(const SubmitCommand& options, const job::SubmissionPlan& plan,
                              const job::MeasuredRun& run) {
  std::int64_t epochs = options.epoch_count();
  if (const yaml::Node* stated = plan.spec.train.find("epochs"); epochs == 0 && stated != nullptr)
    epochs = parse_integer(stated->scalar, 1, 1'000'000'000).value_or(0);
  if (epochs > 0 && run.steps_per_epoch > 0) return epochs * run.steps_per_epoch;
  if (epochs > 0)
    return usage(fmt::format("{} reported no epochs, so the number of steps in {} epochs is unknown",
                             run.source, epochs),
                 "report steps and epochs: share/python/dlrun_client.py");
  if (run.steps > 0) return run.steps;
  return usage("the length of the training is unknown", "set it: --epochs E");
}

int max_links_of(int needed) {
  return needed + std::max(2, (needed + 3) / 4);
}

Result<int> check_links(int needed, const job::SubmissionPlan& plan) {
  const auto allowed = plan.spec.chain.max_links;
  if (allowed && *allowed < needed)
    return fail(
        Error{.kind = ErrorKind::allocation,
              .what = fmt::format("the training needs {} links, and chain.max-links is {}", needed, *allowed),
              .where = plan::place_of(plan.spec, "chain.max-links"),
              .hint = "allow more links, or request a longer walltime",
              .also = {}});
  return std::min(max_links_of(needed), allowed.value_or(max_links_of(needed)));
}

std::string interval_text(const ChainPrediction& prediction) {
  const job::ChainForecast& out = prediction.forecast;
  const std::string every = fmt::format("every {}", format_duration(out.interval));
  if (out.rule == Rule::stated) return every + ", as set";
  const std::string failures =
      fmt::format("for a failure every {}", format_duration(*prediction.question.mtbf));
  if (out.rule == Rule::as_often_as_possible) return every + ", the minimum for its writes, " + failures;
  return fmt::format("{}, by Daly (2006) {}; {} by Young (1974)", every, failures,
                     format_duration(*out.young));
}

constexpr auto kRules = enum_names<Rule>({{Rule::stated, "stated"},
                                          {Rule::daly, "daly-2006"},
                                          {Rule::as_often_as_possible, "as-often-as-possible"}});

std::string when(Instant now, Seconds later) {
  return format_utc(
      std::chrono::floor<std::chrono::seconds>(now + std::chrono::duration_cast<Milliseconds>(later)));
}

}  // namespace

Result<ChainPrediction> predict_chain(const SubmitCommand& options, const job::SubmissionPlan& plan,
                                      const Context& context) {
  ChainPrediction out;
  std::vector<job::MeasuredRun> runs = TRY(measure(options, plan, context));
  out.run = *std::max_element(runs.begin(), runs.end(),
                              [](const auto& a, const auto& b) { return a.timing.step < b.timing.step; });
  out.question.timing = out.run.timing;
  out.question.steps = TRY(steps_of(options, plan, out.run));
  if (plan.spec.resources.walltime != kUnlimited) out.question.walltime = plan.spec.resources.walltime;
  std::optional<Seconds> lead;
  if (const auto stated = parse_duration(plan.spec.checkpoint.lead)) lead = *stated;
  out.question.policy = job::Deadline::policy_for(plan.scheduler->name(), lead);
  out.question.every =
      TRY(job::interval_of(plan.spec.checkpoint.every, out.run.timing.step, out.run.steps_per_epoch));
  if (plan.spec.chain.mtbf) out.question.mtbf = *plan.spec.chain.mtbf / plan.spec.resources.nodes.value_or(1);
  out.question.queue = out.run.queue.value_or(Seconds(0));
  out.forecast = TRY(job::forecast(out.question));
  for (job::MeasuredRun& run : runs) {
    if (!plan.spec.resources.min_nodes) break;
    job::ChainQuestion question = out.question;
    question.timing = run.timing;
    question.walltime = out.forecast.walltime;
    out.sizes.push_back({std::move(run), TRY(job::forecast(question))});
  }
  out.max_links = TRY(check_links(out.forecast.links, plan));
  return out;
}

std::vector<plan::Override> predicted_overrides(const ChainPrediction& prediction,
                                                const job::SubmissionPlan& plan) {
  std::vector<plan::Override> out;
  const auto add = [&](const char* key, std::string value) {
    out.push_back({key, std::move(value), "--chain auto", plan::Override::Reading::text});
  };
  if (!plan.spec.resources.walltime)
    add("resources.walltime", fmt::format("{:.0f}s", prediction.forecast.walltime.count()));
  if (prediction.question.mtbf)
    add("checkpoint.every", fmt::format("{:.3f}s", prediction.forecast.interval.count()));
  return out;
}

Json to_json(const ChainPrediction& prediction, Instant now) {
  const job::ChainForecast& out = prediction.forecast;
  const job::ChainQuestion& asked = prediction.question;
  const auto or_null = [](const std::optional<Seconds>& time) {
    return time ? Json(time->count()) : Json(nullptr);
  };
  Json sizes = Json::array();
  for (const ChainPrediction::Size& size : prediction.sizes)
    sizes.push_back({{"ranks", size.run.ranks},
                     {"measured", size.run.source},
                     {"seconds_per_step", size.run.timing.step.count()},
                     {"links", size.forecast.links},
                     {"in_jobs", size.forecast.in_jobs.count()},
                     {"until_done", size.forecast.until_done.count()}});
  return {{"measured", prediction.run.source},
          {"sizes", std::move(sizes)},
          {"step_timing", job::to_json(std::optional(asked.timing))},
          {"steps", asked.steps},
          {"links", out.links},
          {"max_links", prediction.max_links},
          {"walltime", out.walltime.count()},
          {"checkpoint_interval", out.interval.count()},
          {"checkpoint_rule", kRules.name(out.rule)},
          {"young_interval", or_null(out.young)},
          {"mtbf", or_null(asked.mtbf)},
          {"lead", out.lead.count()},
          {"training", out.training.count()},
          {"in_jobs", out.in_jobs.count()},
          {"useful", out.useful},
          {"queue_per_link", or_null(prediction.run.queue)},
          {"until_done", out.until_done.count()},
          {"done_at", when(now, out.until_done)}};
}

std::vector<std::string> lines_of(const ChainPrediction& prediction, Instant now) {
  const job::ChainForecast& out = prediction.forecast;
  const job::StepTiming& timing = prediction.question.timing;
  const std::string queue = prediction.run.queue
                                ? fmt::format("with {} in the queue before each further link",
                                              format_duration(*prediction.run.queue))
                                : "plus an unknown time in the queue";
  std::vector<std::string> lines{
      fmt::format("measured    {} per step, {} per checkpoint, {} to start: {}", format_duration(timing.step),
                  format_duration(*timing.save), format_duration(timing.start), prediction.run.source),
      fmt::format("links       {} of {} each for {} steps; maximum {}", out.links,
                  format_duration(out.walltime), prediction.question.steps, prediction.max_links),
      fmt::format("checkpoint  {}; the last {} before the end of a link", interval_text(prediction),
                  format_duration(out.lead)),
      fmt::format("time        {} of steps in {} of jobs, {:.0f} % of it useful",
                  format_duration(out.training), format_duration(out.in_jobs), 100 * out.useful),
      fmt::format("done        {}, if started now, {}", when(now, out.until_done), queue)};
  for (const ChainPrediction::Size& size : prediction.sizes)
    lines.push_back(fmt::format("size        {} ranks: {} per step, {} links, {} in jobs: {}", size.run.ranks,
                                format_duration(size.run.timing.step), size.forecast.links,
                                format_duration(size.forecast.in_jobs), size.run.source));
  return lines;
}

}  // namespace dlrun::cli
