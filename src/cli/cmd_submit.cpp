// dlrun submit: hands the job to the scheduler. The job's id alone goes to stdout, so that a script can use
// it.
#include "src/base/quote.hpp"
#include "src/cli/chain_forecast.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/run_words.hpp"
#include "src/job/submit.hpp"
#include "src/plan/load_job.hpp"

namespace dlrun::cli {
namespace {

// Flags of a run that make no sense for a job that gets its nodes later.
Result<void> refuse_named_nodes(const JobOptions& options) {
  const std::pair<const char*, const std::string*> flags[] = {
      {"--hostfile", &options.named.hostfile},
      {"--private-hostfile", &options.named.private_hostfile},
      {"--hosts", &options.named.hosts},
      {"--allocation", &options.allocation_file}};
  for (const auto& [flag, value] : flags)
    if (!value->empty())
      return fail(Error{
          .kind = ErrorKind::usage,
          .what = fmt::format("{} {}: the scheduler chooses the nodes of a submitted job", flag, *value),
          .where = {},
          .hint = "name nodes by resources.extra, for example [\"--nodelist=n1,n2\"]",
          .also = {}});
  return {};
}

// For the runtime's own trainings --epochs is the training's length; other programs have words of their own
// for it.
Result<JobOptions> with_epochs(JobOptions options, std::int64_t epochs, const Context& context) {
  if (epochs == 0) return options;
  const job::Request request = TRY(request_of(options, context.environment));
  const plan::JobSpec spec = TRY(plan::load_job(request.sources, request.here));
  if (spec.framework == "builtin") options.sets.push_back(fmt::format("train.epochs={}", epochs));
  return options;
}

// What goes to the scheduler, and with --chain auto what it was found to need.
struct Planned {
  job::SubmissionPlan plan;
  std::optional<ChainPrediction> prediction;
};

Json to_json(const Planned& planned, Instant now) {
  const job::SubmissionPlan& plan = planned.plan;
  Json out{{"schema", "dlrun.submission/1"},
           {"scheduler", plan.scheduler->name()},
           {"job_id", nullptr},
           {"wrapper", plan.script_path},
           {"chain", nullptr},
           {"command", plan.command}};
  if (planned.prediction) out["forecast"] = cli::to_json(*planned.prediction, now);
  return out;
}

void say_prediction(const Planned& planned, Instant now, Console& console) {
  if (!planned.prediction) return;
  for (const std::string& line : lines_of(*planned.prediction, now)) console.say("dlrun: " + line);
}

Result<int> show_dry_run(const Planned& planned, Instant now, const Context& context) {
  if (context.common.json) {
    Json out = to_json(planned, now);
    out["script"] = planned.plan.script;
    TRY(context.console.data(to_pretty_text(out)));
    return 0;
  }
  TRY(context.console.data(planned.plan.script));
  say_prediction(planned, now, context.console);
  context.console.say("dlrun: would be submitted by: " + shell_join(planned.plan.command));
  return 0;
}

Result<job::SubmissionPlan> plan_it(const JobOptions& options, const std::filesystem::path& folder,
                                    std::optional<int> links, const Context& context) {
  const job::Request request = TRY(request_of(options, context.environment));
  Argv words = run_words(options);
  if (links) words.insert(words.begin(), "--link-of=" + folder.string());
  return job::plan_submission(request, words, folder, SystemCommands(), links);
}

// The job as the planner makes it: planned once to see what it is, and again with what follows.
Result<Planned> plan_auto(SubmitOptions options, const std::filesystem::path& folder,
                          const Context& context) {
  options.job = TRY(with_epochs(std::move(options.job), options.epochs, context));
  if (!options.mtbf.empty()) options.job.sets.push_back("chain.mtbf=" + options.mtbf);
  const job::SubmissionPlan first = TRY(plan_it(options.job, folder, 1, context));
  Planned out;
  out.prediction = TRY(predict_chain(options, first, context));
  out.plan = TRY(plan_it(with_prediction(options.job, *out.prediction, first), folder,
                         out.prediction->max_links, context));
  return out;
}

}  // namespace

Result<int> submit(const SubmitOptions& options, const Context& context) {
  TRY(refuse_named_nodes(options.job));
  const Instant now = SystemClock().now();
  const auto folder = TRY(job::new_submission_folder(TRY(request_of(options.job, context.environment)), now));
  Planned planned;
  if (options.chain == "auto")
    planned = TRY(plan_auto(options, folder, context));
  else
    planned.plan = TRY(plan_it(options.job, folder, options.chain_links(), context));
  if (options.dry_run) return show_dry_run(planned, now, context);
  const job::SubmissionPlan& plan = planned.plan;
  const std::string id = TRY(job::hand_in(plan, context.environment, SystemCommands()));
  say_prediction(planned, now, context.console);
  context.console.say(fmt::format("dlrun: job {} of {} is submitted; what it prints comes to {}", id,
                                  plan.scheduler->name(), plan.folder));
  Json out = to_json(planned, now);
  out["job_id"] = id;
  if (plan.chain) out["chain"] = plan.folder;
  TRY(context.console.data(context.common.json ? to_pretty_text(out) : id + "\n"));
  return 0;
}

}  // namespace dlrun::cli
