// dlrun submit: hands the job to the scheduler. The job's id alone goes to stdout, so that a script can use
// it.
#include "src/base/quote.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/run_words.hpp"
#include "src/job/submit.hpp"

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

// The elements of an array would share one ledger.
Result<void> refuse_arrays(const job::SubmissionPlan& plan) {
  for (const Directive& line : plan.directives)
    if (line.key == "resources.extra" && line.text.find("-array") != std::string::npos)
      return fail(
          Error{.kind = ErrorKind::usage,
                .what = fmt::format("--chain and an array of jobs do not go together: '{}'", line.text),
                .where = {},
                .hint = "submit a chain for each element",
                .also = {}});
  return {};
}

Json to_json(const job::SubmissionPlan& plan) {
  return {{"schema", "dlrun.submission/1"},
          {"scheduler", plan.scheduler->name()},
          {"job_id", nullptr},
          {"wrapper", plan.script_path},
          {"chain", nullptr},
          {"command", plan.command}};
}

Result<int> show_dry_run(const job::SubmissionPlan& plan, const Context& context) {
  if (context.common.json) {
    Json out = to_json(plan);
    out["script"] = plan.script;
    TRY(context.console.data(to_pretty_text(out)));
    return 0;
  }
  TRY(context.console.data(plan.script));
  context.console.say("dlrun: would be submitted by: " + shell_join(plan.command));
  return 0;
}

}  // namespace

Result<int> submit(const SubmitOptions& options, const Context& context) {
  TRY(refuse_named_nodes(options.job));
  const job::Request request = TRY(request_of(options.job, context.environment));
  const SystemCommands commands;
  const auto folder = TRY(job::new_submission_folder(request, SystemClock().now()));
  Argv words = run_words(options.job);
  if (options.chain > 0) words.insert(words.begin(), "--link-of=" + folder.string());
  const job::SubmissionPlan plan = TRY(job::plan_submission(request, words, folder, commands));
  if (options.chain > 0) TRY(refuse_arrays(plan));
  if (options.dry_run) return show_dry_run(plan, context);
  const std::string id = TRY(job::hand_in(plan, context.environment, commands,
                                          options.chain > 0 ? std::optional(options.chain) : std::nullopt));
  context.console.say(fmt::format("dlrun: job {} of {} is submitted; what it prints comes to {}", id,
                                  plan.scheduler->name(), plan.folder));
  Json out = to_json(plan);
  out["job_id"] = id;
  if (options.chain > 0) out["chain"] = plan.folder;
  TRY(context.console.data(context.common.json ? to_pretty_text(out) : id + "\n"));
  return 0;
}

}  // namespace dlrun::cli
