#include "src/cli/cmd_submit.hpp"

#include "src/base/quote.hpp"
#include "src/base/units.hpp"
#include "src/chain/submit.hpp"
#include "src/cli/chain_forecast.hpp"
#include "src/cli/request.hpp"
#include "src/cli/set_conflicts.hpp"
#include "src/cli/submit_flags.hpp"
#include "src/cli/submit_sweep.hpp"
#include "src/cli/usage_error.hpp"
#include "src/plan/load_job.hpp"
#include "src/run/single_start.hpp"

namespace dlrun::cli {
namespace {

constexpr std::int64_t kMaxLinks = 100'000, kMaxEpochs = 1'000'000'000;

std::string check_chain(const std::string& text) {
  if (text == "auto" || parse_integer(text, 1, kMaxLinks)) return {};
  return fmt::format("unknown value '{}'; expected auto or a number in [1, {}]", text, kMaxLinks);
}

std::string check_epochs(const std::string& text) {
  const auto count = parse_integer(text, 1, kMaxEpochs);
  return count ? "" : count.error().what;
}

constexpr FlagRow<SubmitCommand> kSubmitFlags[] = {
    {{.name = "--dry-run", .help = "show the script and the command; submit nothing"},
     &SubmitCommand::dry_run},
    {{.name = "--chain",
      .value = "N|auto",
      .help = "continue the training over up to N jobs; auto: over as many as it takes",
      .choices = "auto",
      .check = check_chain},
     &SubmitCommand::chain},
    {{.name = "--epochs",
      .value = "E",
      .help = "with --chain auto: the number of epochs of the training",
      .check = check_epochs},
     &SubmitCommand::epochs},
    {{.name = "--mtbf",
      .value = "TIME",
      .help = "with --chain auto: mean time between failures of a node; sets the checkpoint interval"},
     &SubmitCommand::mtbf},
    {{.name = "--measured",
      .value = "RUN",
      .help = "with --chain auto: the run that measured steps and checkpoints (default: the newest)"},
     &SubmitCommand::measured},
    {{.name = "--probe",
      .value = "TIME",
      .help = "with --chain auto: first run the job here for this time, to measure it",
      .excludes = "--measured"},
     &SubmitCommand::probe},
    {{.name = "--sweep",
      .help = "submit each point of a benchmark (section bench, --axis) as a job",
      .excludes = "--chain"},
     &SubmitCommand::sweep},
    {{.name = "--axis",
      .value = "KEY=V1,V2,...",
      .help = "with --sweep: values of a key, as for dlrun bench"},
     &SubmitCommand::axes},
};

// With the job read, once: what the planner of chains adds is laid over it. It may name variables that its
// scheduler sets only when it runs.
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

// Each link has a run directory of its own below the submission's folder.
Result<void> refuse_run_directory_of_chain(const SubmitCommand& options) {
  if (options.chain.empty() || options.job.run_dir.empty()) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("--run-dir {}: the jobs of a chain have run directories of their own",
                                        options.job.run_dir),
                    .where = {},
                    .hint = "remove it: they are in the folder of the submission",
                    .also = {}});
}

// For the runtime's own trainings --epochs is the training's length; other programs have words of their own
// for it.
std::vector<plan::Override> stated_overrides(const SubmitCommand& options, const plan::JobSpec& spec) {
  std::vector<plan::Override> out;
  if (options.epoch_count() != 0 && spec.framework == "builtin")
    out.push_back({"train.epochs", std::to_string(options.epoch_count()), "--epochs"});
  if (!options.mtbf.empty()) out.push_back({"chain.mtbf", options.mtbf, "--mtbf"});
  return out;
}

// The --set of the command line, which the planner's flags must not contradict.
std::vector<plan::Override> sets_of(const job::Request& request) {
  std::vector<plan::Override> out;
  for (const plan::Override& one : request.sources.overrides)
    if (one.source.starts_with("--set ")) out.push_back(one);
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
    context.console.say(
        fmt::format("dlrun: not submitted; the command would be: {}; the job would be saved in {}",
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
Result<Submissions> plan_auto(const SubmitCommand& options, Submitted job,
                              const std::filesystem::path& folder, const Context& context) {
  const std::vector<plan::Override> stated = stated_overrides(options, *job.request.spec);
  TRY(check_set_conflicts(stated, sets_of(job.request)));
  job.request = TRY(with_overrides(std::move(job.request), stated));
  const job::SubmissionPlan first = TRY(plan_it(job, folder, job::ChainAsk{}));
  const ChainPrediction prediction = TRY(predict_chain(options, first, context));
  job.request = TRY(with_overrides(std::move(job.request), predicted_overrides(prediction, first)));
  Submissions out =
      TRY(with_elements(TRY(plan_it(job, folder, job::ChainAsk{.links = prediction.max_links})), job));
  out.prediction = prediction;
  return out;
}

Result<Submissions> plan_all(const SubmitCommand& options, const Submitted& job,
                             const std::filesystem::path& folder, const Context& context) {
  if (options.chain == "auto") return plan_auto(options, job, folder, context);
  std::optional<job::ChainAsk> chain;
  if (const auto links = options.chain_links()) chain = job::ChainAsk{.links = *links};
  return with_elements(TRY(plan_it(job, folder, chain)), job);
}

// Former names that were used, each said once.
void say_renamed(const job::Request& request, Console& console) {
  std::vector<std::string> warnings = request.spec->warnings;
  if (const std::string renamed = renamed_scheduler(request.scheduler, "--scheduler"); !renamed.empty())
    warnings.push_back(renamed);
  for (const std::string& warning : warnings) console.say("dlrun: warning: " + warning);
}

// The id of the job. Those that were submitted before it stay: an Error says how many they are.
Result<std::string> submit_one(const Submissions& submissions, std::size_t index, const Context& context) {
  auto id = job::submit(submissions.all[index].plan, context.environment, SystemCommands());
  if (!id && index > 0)
    id.error().also.push_back(
        fmt::format("{} of the {} chains of the array are submitted; cancel one with: dlrun chain stop {}",
                    index, submissions.all.size(), submissions.all.front().plan.folder));
  return id;
}

}  // namespace

const char* const SubmitCommand::kExamples = R"(Examples:
  dlrun submit train.yaml                           submit the job; its id is printed
  dlrun submit --dry-run train.yaml                 show the script and the command, and submit nothing
  dlrun submit --nodes 4 --set resources.walltime=8h train.yaml    with other resources than the file says
  dlrun submit --chain 8 train.yaml                 go on in up to eight jobs, until the training is done
  dlrun submit --chain auto --epochs 90 --dry-run train.yaml    how many jobs it will take, and until when
  dlrun submit --sweep --axis nodes=1,2,4 train.yaml    a job for each point of a benchmark
  dlrun submit --scheduler pbs --dry-run train.yaml    for a scheduler that is not here)";

void SubmitCommand::add(Arguments& arguments) {
  add_job(arguments, job);
  arguments.flags<SubmitCommand>(kSubmitFlags, *this);
}

// What only the planner of chains can use is refused without it.
Result<void> SubmitCommand::finish(const ExtraArguments& extra) {
  job.program = extra.of_program;
  const std::pair<const char*, const std::string*> of_planner[] = {
      {"--epochs", &epochs}, {"--mtbf", &mtbf}, {"--measured", &measured}, {"--probe", &probe}};
  for (const auto& [flag, value] : of_planner)
    if (chain != "auto" && !value->empty())
      return fail(usage_error("submit", fmt::format("{} needs --chain auto", flag), "add --chain auto"));
  if (!axes.empty() && !sweep) return fail(usage_error("submit", "--axis needs --sweep", "add --sweep"));
  return {};
}

std::optional<int> SubmitCommand::chain_links() const {
  if (const auto links = parse_integer(chain, 1, kMaxLinks)) return static_cast<int>(*links);
  return std::nullopt;
}

std::int64_t SubmitCommand::epoch_count() const {
  return parse_integer(epochs, 1, kMaxEpochs).value_or(0);
}

Result<int> SubmitCommand::run(const Context& context) {
  TRY(job::check_single_start(context.environment));
  TRY(check_refused_flags(job));
  TRY(refuse_run_directory_of_chain(*this));
  if (sweep) return run_sweep(*this, context);
  const Instant now = SystemClock().now();
  const Submitted submitted{TRY(request_to_submit(job, context.environment)),
                            forwarded_flags(job, context.common)};
  say_renamed(submitted.request, context.console);
  const auto folder = job::new_submission_folder(submitted.request.here, *submitted.request.spec, now);
  const Submissions submissions = TRY(plan_all(*this, submitted, folder, context));
  if (dry_run) return show_dry_run(submissions, now, context);
  std::vector<Json> parts;
  std::string ids;
  for (std::size_t i = 0; i < submissions.all.size(); ++i) {
    const job::SubmissionPlan& plan = submissions.all[i].plan;
    const std::string id = TRY(submit_one(submissions, i, context));
    context.console.say(
        fmt::format("dlrun: submitted {1} job {0}; output in {2}", id, plan.scheduler->name(), plan.folder));
    parts.push_back(to_json(submissions.all[i], id));
    ids += id + "\n";
  }
  say_prediction(submissions, now, context.console);
  TRY(context.console.data(context.common.json ? to_pretty_text(document(parts, submissions.prediction, now))
                                               : ids));
  return 0;
}

}  // namespace dlrun::cli
