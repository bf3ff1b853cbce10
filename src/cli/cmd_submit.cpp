// dlrun submit: submits the job to the scheduler. It is read once; what the planner of chains adds is laid
// over the job that was read. The job's id alone goes to stdout, so that a script can use it.
#include "src/base/quote.hpp"
#include "src/chain/submit.hpp"
#include "src/cli/chain_forecast.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/run_arguments.hpp"
#include "src/plan/load_job.hpp"
#include "src/run/single_start.hpp"

namespace dlrun::cli {
namespace {

// With the job read. It may name variables that its scheduler sets only when it runs.
Result<job::Request> request_to_submit(const JobOptions& options, const Environment& environment) {
  job::Request request = TRY(request_of(options, environment));
  request.sources.scheduler_variables = plan::SchedulerVariables::may_come;
  request.spec = TRY(job_spec_of(request));
  return request;
}

Result<job::Request> with_overrides(job::Request request, const std::vector<plan::Override>& overrides) {
  request.spec = TRY(plan::override_job(*request.spec, request.sources, overrides));
  return request;
}

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

// Each link has a run directory of its own below the submission's folder.
Result<void> refuse_run_directory_of_chain(const SubmitOptions& options) {
  if (options.chain.empty() || options.job.run_dir.empty()) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("--run-dir {}: the jobs of a chain have run directories of their own",
                                        options.job.run_dir),
                    .where = {},
                    .hint = "leave it out: they are in the folder of the submission",
                    .also = {}});
}

// For the runtime's own trainings --epochs is the training's length; other programs have words of their own
// for it.
std::vector<plan::Override> stated_overrides(const SubmitOptions& options, const plan::JobSpec& spec) {
  std::vector<plan::Override> out;
  if (options.epochs != 0 && spec.framework == "builtin")
    out.push_back({"train.epochs", std::to_string(options.epochs), "--epochs"});
  if (!options.mtbf.empty()) out.push_back({"chain.mtbf", options.mtbf, "--mtbf"});
  return out;
}

// What goes to the scheduler, and with --chain auto what it was found to need.
struct Planned {
  job::SubmissionPlan plan;
  std::optional<int> element = std::nullopt;  // of an array, of which each element is a chain
};
struct Submissions {
  std::vector<Planned> all;
  std::optional<ChainPrediction> prediction;
};

Json to_json(const Planned& planned, const std::optional<std::string>& job_id) {
  const job::SubmissionPlan& plan = planned.plan;
  Json out{{"schema", "dlrun.submission/1"},
           {"scheduler", plan.scheduler->name()},
           {"job_id", job_id ? Json(*job_id) : Json(nullptr)},
           {"wrapper", plan.script_path},
           {"spec", plan.frozen_job_path},
           {"chain", job_id && plan.chain ? Json(plan.folder) : Json(nullptr)},
           {"command", plan.command}};
  if (planned.element) out["array_index"] = *planned.element;
  if (job_id) return out;
  out["script"] = plan.script;
  if (const auto frozen = parse_json(plan.frozen_job, "spec.json"))
    out["job"] = frozen->at("job").at("value");
  return out;
}

// One submission as itself; the chains of an array as a list.
Json document(std::vector<Json> parts, const std::optional<ChainPrediction>& prediction, Instant now) {
  Json out = parts.size() == 1 && !parts.front().contains("array_index")
                 ? parts.front()
                 : Json{{"schema", "dlrun.submission/1"}, {"elements", parts}};
  if (prediction) out["forecast"] = cli::to_json(*prediction, now);
  return out;
}

void say_prediction(const Submissions& submissions, Instant now, Console& console) {
  if (!submissions.prediction) return;
  for (const std::string& line : lines_of(*submissions.prediction, now)) console.say("dlrun: " + line);
}

Result<int> show_dry_run(const Submissions& submissions, Instant now, const Context& context) {
  if (context.common.json) {
    std::vector<Json> parts;
    for (const Planned& one : submissions.all) parts.push_back(to_json(one, std::nullopt));
    TRY(context.console.data(to_pretty_text(document(parts, submissions.prediction, now))));
    return 0;
  }
  for (const Planned& one : submissions.all) TRY(context.console.data(one.plan.script));
  say_prediction(submissions, now, context.console);
  for (const Planned& one : submissions.all)
    context.console.say(fmt::format("dlrun: would be submitted by: {}, with the job as it is now in {}",
                                    shell_join(one.plan.command), one.plan.frozen_job_path));
  return 0;
}

// A job to submit, and the flags that its dlrun gets.
struct Submitted {
  job::Request request;
  Argv flags;
};

Result<job::SubmissionPlan> plan_it(const Submitted& job, const std::filesystem::path& folder,
                                    const std::optional<job::ChainAsk>& chain) {
  Argv flags = job.flags;
  if (chain) flags.insert(flags.begin(), "--link-of=" + folder.string());
  return job::plan_submission(job.request, flags, folder, SystemCommands(), chain);
}

// One element of the array that `whole` is: a job and a chain alone, with checkpoints of its own.
Result<Planned> plan_element(Submitted job, const job::SubmissionPlan& whole, int element) {
  std::vector<plan::Override> overrides;
  if (!whole.spec.checkpoint.dir.empty())
    overrides.push_back({"checkpoint.dir", fmt::format("{}/element-{}", whole.spec.checkpoint.dir, element),
                         "--set checkpoint.dir", plan::Override::Reading::text});
  job.request = TRY(with_overrides(std::move(job.request), overrides));
  return Planned{TRY(plan_it(job, job::element_folder(whole.folder, element),
                             job::ChainAsk{.links = whole.chain->max_links, .element = element})),
                 element};
}

Result<Submissions> with_elements(job::SubmissionPlan whole, const Submitted& job) {
  Submissions out;
  for (const int element : whole.array) out.all.push_back(TRY(plan_element(job, whole, element)));
  if (out.all.empty()) out.all.push_back({std::move(whole)});
  return out;
}

// The job as the planner makes it: planned once to see what it is, and again with what follows.
Result<Submissions> plan_auto(const SubmitOptions& options, Submitted job,
                              const std::filesystem::path& folder, const Context& context) {
  const std::vector<plan::Override> stated = stated_overrides(options, *job.request.spec);
  job.request = TRY(with_overrides(std::move(job.request), stated));
  const job::SubmissionPlan first = TRY(plan_it(job, folder, job::ChainAsk{}));
  const ChainPrediction prediction = TRY(predict_chain(options, first, context));
  job.request = TRY(with_overrides(std::move(job.request), predicted_overrides(prediction, first)));
  Submissions out =
      TRY(with_elements(TRY(plan_it(job, folder, job::ChainAsk{.links = prediction.max_links})), job));
  out.prediction = prediction;
  return out;
}

Result<Submissions> plan_all(const SubmitOptions& options, const Submitted& job,
                             const std::filesystem::path& folder, const Context& context) {
  if (options.chain == "auto") return plan_auto(options, job, folder, context);
  std::optional<job::ChainAsk> chain;
  if (const auto links = options.chain_links()) chain = job::ChainAsk{.links = *links};
  return with_elements(TRY(plan_it(job, folder, chain)), job);
}

// The id of the job that was submitted. Those before it stay: an Error says how many they are.
Result<std::string> submit_one(const Submissions& submissions, std::size_t index, const Context& context) {
  auto id = job::submit(submissions.all[index].plan, context.environment, SystemCommands());
  if (!id && index > 0)
    id.error().also.push_back(
        fmt::format("{} of the array's {} chains were submitted before and run; end one with: "
                    "dlrun chain stop {}",
                    index, submissions.all.size(), submissions.all.front().plan.folder));
  return id;
}

}  // namespace

Result<int> submit(const SubmitOptions& options, const Context& context) {
  TRY(job::check_single_start(context.environment));
  TRY(refuse_named_nodes(options.job));
  TRY(refuse_run_directory_of_chain(options));
  const Instant now = SystemClock().now();
  const Submitted job{TRY(request_to_submit(options.job, context.environment)),
                      forwarded_flags(options.job, context.common)};
  std::vector<std::string> warnings = job.request.spec->warnings;
  if (const std::string renamed = renamed_scheduler(job.request.scheduler, "--scheduler"); !renamed.empty())
    warnings.push_back(renamed);
  for (const std::string& warning : warnings) context.console.say("dlrun: warning: " + warning);
  const auto folder = job::new_submission_folder(job.request.here, *job.request.spec, now);
  const Submissions submissions = TRY(plan_all(options, job, folder, context));
  if (options.dry_run) return show_dry_run(submissions, now, context);
  std::vector<Json> parts;
  std::string ids;
  for (std::size_t i = 0; i < submissions.all.size(); ++i) {
    const job::SubmissionPlan& plan = submissions.all[i].plan;
    const std::string id = TRY(submit_one(submissions, i, context));
    context.console.say(fmt::format("dlrun: job {} of {} is submitted; what it prints comes to {}", id,
                                    plan.scheduler->name(), plan.folder));
    parts.push_back(to_json(submissions.all[i], id));
    ids += id + "\n";
  }
  say_prediction(submissions, now, context.console);
  TRY(context.console.data(context.common.json ? to_pretty_text(document(parts, submissions.prediction, now))
                                               : ids));
  return 0;
}

}  // namespace dlrun::cli
