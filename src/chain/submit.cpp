#include "src/chain/submit.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "schedulers/array_indices.hpp"
#include "schedulers/scheduler.hpp"
#include "src/base/file.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/chain/excluded_nodes.hpp"
#include "src/chain/folder.hpp"
#include "src/plan/hypothetical_nodes.hpp"
#include "src/plan/make_plan.hpp"
#include "src/plan/placement.hpp"
#include "src/render/template.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

// Plans the job on nodes that the scheduler may give it: roles, counts and adapter are checked by the
// planner.
Result<plan::Plan> trial_plan(const Request& request, const plan::JobSpec& spec, int nodes) {
  plan::PlanInput input;
  input.spec = spec;
  input.allocation = plan::hypothetical_allocation(nodes, spec.resources.gpus_per_node);
  input.adapter =
      TRY(plan::find_adapter(adapters_of(request), spec.framework, plan::place_of(spec, "framework")));
  input.job_id = "submit";
  input.installation = request.installation;
  input.environment = request.environment;
  input.run_directory = (request.here / "runs").string();
  input.working_directory = request.sources.job_file ? "" : request.here.string();
  input.detected_mpi = plan::MpiProtocol::pmix;  // the program may be one that only the nodes have
  return plan::make_plan(input);
}

// Ranks of the node that has most of them: with roles, tasks-per-node does not tell.
int max_ranks_of_node(const plan::Plan& plan) {
  std::vector<int> counts(plan.nodes.size());
  for (const plan::RankPlan& rank : plan.ranks) ++counts.at(static_cast<std::size_t>(rank.node.get()));
  return counts.empty() ? 1 : std::max(1, *std::max_element(counts.begin(), counts.end()));
}

// A job that has lost a node is ended by some schedulers unless they are told that it can do without.
std::string key_of_spare_nodes(const plan::JobSpec& spec) {
  if (spec.elastic) return "elastic";
  return spec.launch.retries > 0 ? "launch.retries" : "";
}

SubmissionRequest request_to_scheduler(const plan::JobSpec& spec, const plan::Plan& trial,
                                       const fs::path& here, const fs::path& folder) {
  const plan::Resources& asked = spec.resources;
  SubmissionRequest out;
  out.name = spec.name;
  out.directory = here.string();
  out.output = folder.string();
  out.nodes = asked.nodes.value_or(1);
  out.min_nodes = asked.min_nodes;
  out.tasks_per_node = spec.roles.empty() ? plan::tasks_per_node(asked) : max_ranks_of_node(trial);
  out.cpus_per_task = asked.cpus_per_task.value_or(1);
  out.gpus_per_node = asked.gpus_per_node.value_or(0);
  out.unlimited = asked.walltime == kUnlimited;
  if (asked.walltime && !out.unlimited)
    out.walltime = std::chrono::seconds(std::llround(std::ceil(asked.walltime->count())));
  out.queue = asked.queue;
  out.account = asked.account;
  out.memory = asked.node.memory;
  for (const plan::NodeChunk& chunk : asked.chunks)
    out.chunks.push_back({.nodes = chunk.nodes,
                          .cpus = chunk.cpus.value_or(out.tasks_per_node * out.cpus_per_task),
                          .gpus = chunk.gpus.value_or(out.gpus_per_node),
                          .memory = chunk.memory ? chunk.memory : out.memory});
  out.gpu_type = asked.node.gpu_type;
  out.constraint = asked.node.constraint;
  out.exclusive = asked.node.exclusive;
  out.qos = asked.qos;
  out.mail = asked.mail;
  out.mail_events = asked.mail_events;
  out.extra = asked.extra;
  out.outlives_nodes = key_of_spare_nodes(spec);
  return out;
}

// What is asked for and left out would be a job that is another one than its file says.
Result<void> check_expressible(const Submission& scheduler, const SubmissionRequest& request,
                               const plan::JobSpec& spec) {
  const auto key = inexpressible_key(scheduler, request);
  if (!key) return {};
  const std::string value = key->key == "resources.walltime" ? " UNLIMITED"
                            : key->key == "resources.nodes"  ? ' ' + node_count(request)
                                                             : "";
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("{} has no directive for {}{}", scheduler.name(), key->key, value),
                    .where = plan::place_of(spec, key->key),
                    .hint = std::string(key->hint)});
}

std::string option_of(const Directive& line, const Submission& scheduler) {
  return std::string(trim(std::string_view(line.text).substr(scheduler.marker().size())));
}

// What an element of an array is told that is a job alone.
Json element_variables(const SubmissionPlan& plan, const std::optional<ChainAsk>& chain) {
  Json out = Json::array();
  if (chain && chain->element)
    out.push_back(fmt::format("{}={}", plan.scheduler->array_variable(), *chain->element));
  return out;
}

Result<std::string> script_of(const SubmissionPlan& plan, const Request& request, const Argv& flags,
                              const Json& variables) {
  const fs::path file = request.installation.data / "templates" / "submit.sh.tmpl";
  const render::Template script = TRY(render::Template::parse(TRY(read_file(file)), file.string()));
  Json lines = Json::array();
  for (const Directive& directive : plan.directives) lines.push_back(directive.text);
  Argv words{(request.installation.bin / "dlrun").string(), "run", "--spec=" + plan.frozen_job_path};
  words.insert(words.end(), flags.begin(), flags.end());
  const Json context{{"directives", lines},
                     {"variables", variables},
                     {"directory", request.here.string()},
                     {"command", shell_line(words)}};
  Json example = context;
  example["variables"] = {"NAME=value"};  // few jobs have any
  TRY(script.check(example));
  // On one line: some schedulers take a line of the script for a directive wherever it stands.
  return script.render(
      context, [](std::string_view text) { return shell_line(std::vector<std::string>{std::string(text)}); });
}

// Which of the user's own directives makes the job an array; the end where none does.
std::vector<Directive>::iterator array_directive(SubmissionPlan& plan) {
  return std::find_if(plan.directives.begin(), plan.directives.end(), [&](const Directive& line) {
    return line.key == "resources.extra" && plan.scheduler->array_list(option_of(line, *plan.scheduler));
  });
}

// Takes the array's directive out and keeps its indices.
Result<void> take_array_out(SubmissionPlan& plan) {
  const auto line = array_directive(plan);
  if (line == plan.directives.end()) return {};
  const std::string option = option_of(*line, *plan.scheduler);
  const auto indices = parse_array_indices(*plan.scheduler->array_list(option));
  const std::string place = plan::place_of(plan.spec, line->key);
  if (!indices) {
    Error error = indices.error();
    error.where = place;
    return fail(std::move(error));
  }
  if (std::count(option.begin(), option.end(), '-') > 1 && option.find(" -") != option.npos)
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("'{}' combines a job array with other options", option),
                      .where = place,
                      .hint = "with --chain, write the array as a separate item of resources.extra"});
  plan.array = *indices;
  plan.directives.erase(line);
  if (array_directive(plan) != plan.directives.end())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = "resources.extra sets a job array twice",
                      .where = place,
                      .hint = "keep one of them"});
  return {};
}

Result<void> make_chain(SubmissionPlan& plan, int max_links) {
  TRY(take_array_out(plan));
  const plan::ChainSpec& asked = plan.spec.chain;
  plan.chain = ChainPlan{.max_links = std::min(max_links, asked.max_links.value_or(max_links)),
                         .retries = asked.retries,
                         .mode = TRY(chain_mode(asked.mode))};
  if (plan.chain->mode != ChainMode::requeue) return {};
  const std::string_view directive = plan.scheduler->requeue_directive();
  if (directive.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("chain.mode: requeue: {} has no job requeue",
                                          scheduler_title(plan.scheduler->name())),
                      .where = plan::place_of(plan.spec, "chain.mode"),
                      .hint = "use chain.mode: resubmit, or presubmit where jobs may not submit others",
                      .also = {}});
  // First: where the user says otherwise, the later word is his.
  plan.directives.insert(plan.directives.begin(),
                         {fmt::format("{} {}", plan.scheduler->marker(), directive), "", {}});
  return {};
}

Chain new_chain(const SubmissionPlan& plan, const Environment& environment) {
  Chain out;
  out.name = plan.name;
  out.scheduler = plan.scheduler->name();
  out.mode = plan.chain->mode;
  out.max_links = plan.chain->max_links;
  out.retries = plan.chain->retries;
  out.script = plan.script_path;
  out.search_path = environment.get("PATH");
  out.checkpoint_files = plan.spec.checkpoint.files;
  return out;
}

// The further links, each waiting for the one before. Those that got in serve: an Error says how many.
Result<void> submit_all(const SubmissionPlan& plan, const std::string& first, const Environment& environment,
                        const CommandRunner& commands) {
  const ChainFolder folder(plan.folder);
  std::vector<std::string> jobs{first};
  while (static_cast<int>(jobs.size()) < plan.chain->max_links) {
    auto next = submit_job(*plan.scheduler, plan.directives, plan.script_path, jobs.back(), environment,
                           commands, plan.excluded);
    if (!next) {
      next.error().what += fmt::format("; {} of {} links are submitted", jobs.size(), plan.chain->max_links);
      next.error().hint = fmt::format("let these run, or cancel them: dlrun chain stop {}", plan.folder);
      return fail(std::move(next).error());
    }
    jobs.push_back(*next);
    TRY(folder.write_presubmitted_jobs(jobs));
  }
  return {};
}

// Which job it became: `dlrun status` asks the scheduler for it.
Result<void> write_submission(const SubmissionPlan& plan, const std::string& job) {
  const Json json{{"schema", "dlrun.submitted/1"},
                  {"name", plan.name},
                  {"framework", plan.spec.framework},
                  {"scheduler", plan.scheduler->name()},
                  {"job_id", job},
                  {"submitted", format_utc(SystemClock().now())}};
  return replace_file(fs::path(plan.folder) / "submission.json", to_pretty_text(json), Durability::synced);
}

}  // namespace

Result<void> write_frozen_job(const fs::path& path, const std::string& text) {
  TRY(replace_file(path, text, Durability::synced));
  std::error_code problem;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write, problem);
  if (!problem) return {};
  return fail(ErrorKind::io, "cannot change the mode of {}: {}", path.string(), problem.message());
}

fs::path new_submission_folder(const fs::path& here, const plan::JobSpec& spec, Instant now) {
  return here / "runs" / fmt::format("submit-{}-{}", spec.name, new_job_id(now));
}

fs::path element_folder(const fs::path& folder, int element) {
  return fs::path(folder.string() + fmt::format(".{}", element));
}

Result<SubmissionPlan> plan_submission(const Request& request, const Argv& flags, const fs::path& folder,
                                       const CommandRunner& commands, std::optional<ChainAsk> chain) {
  SubmissionPlan out;
  out.spec = TRY(job_spec_of(request));
  // Of a range both ends must be possible.
  const plan::Resources& nodes = out.spec.resources;
  if (nodes.min_nodes) out.min_ranks = TRY(trial_plan(request, out.spec, *nodes.min_nodes)).ranks.size();
  const plan::Plan trial = TRY(trial_plan(request, out.spec, nodes.nodes.value_or(1)));
  out.ranks = trial.ranks.size();
  out.scheduler = TRY(find_submission(request.scheduler, request.environment, commands));
  out.name = out.spec.name;
  out.folder = folder.string();
  out.script_path = (folder / "job.sh").string();
  out.frozen_job_path = (folder / "spec.json").string();
  out.frozen_job = TRY(plan::freeze_job(out.spec, request.sources.job_file, request.here));
  if (chain && chain->element) out.name += fmt::format(".{}", *chain->element);
  SubmissionRequest asked = request_to_scheduler(out.spec, trial, request.here, folder);
  asked.name = out.name;
  TRY(check_expressible(*out.scheduler, asked, out.spec));
  TRY(out.scheduler->check_possible(asked, request.environment, commands));
  out.directives = TRY(out.scheduler->directives(asked));
  if (chain) TRY(make_chain(out, chain->links));
  for (Directive& directive : out.directives) directive.place = plan::place_of(out.spec, directive.key);
  out.script = TRY(script_of(out, request, flags, element_variables(out, chain)));
  out.excluded = nodes_to_exclude(*out.scheduler, out.spec, out.script, request.environment, commands,
                                  SystemClock().now());
  out.command = submit_command(*out.scheduler, out.script_path, "", out.excluded);
  return out;
}

Result<std::string> submit(const SubmissionPlan& plan, const Environment& environment,
                           const CommandRunner& commands) {
  TRY(make_directories(fs::path(plan.folder).parent_path(), Access::shared));
  TRY(make_directories(plan.folder, Access::owner_only));
  TRY(write_frozen_job(plan.frozen_job_path, plan.frozen_job));
  TRY(replace_file(plan.script_path, plan.script, Durability::synced));
  if (plan.chain) TRY(ChainFolder(plan.folder).create(new_chain(plan, environment)));
  auto job = submit_job(*plan.scheduler, plan.directives, plan.script_path, plan.after, environment, commands,
                        plan.excluded);
  if (job) {
    const auto pause = [](Seconds time) { std::this_thread::sleep_for(time); };
    if (auto taken = check_taken(*plan.scheduler, *job, environment, commands, pause); !taken)
      job = fail(std::move(taken).error());
  }
  std::error_code ignored;
  if (!job) fs::remove_all(plan.folder, ignored);
  if (job) TRY(write_submission(plan, *job));
  if (!job || !plan.chain) return job;
  // Beside the ledger, which is the first link's as soon as the job is submitted.
  TRY(ChainFolder(plan.folder).write_first_job(*job));
  if (plan.chain->mode == ChainMode::presubmit) TRY(submit_all(plan, *job, environment, commands));
  return job;
}

}  // namespace dlrun::job
