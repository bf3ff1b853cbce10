#include "src/cli/cmd_plan.hpp"

#include <map>

#include "src/cli/parallel_lines.hpp"
#include "src/cli/plan_table.hpp"
#include "src/cli/request.hpp"
#include "src/plan/asked_slots.hpp"
#include "src/plan/node_inventory.hpp"
#include "src/plan/placement.hpp"
#include "src/plan/plan_text.hpp"
#include "src/plan/roles.hpp"
#include "src/plan/secret_words.hpp"
#include "src/plan/secrets.hpp"
#include "src/run/checks.hpp"
#include "src/run/run_directory.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<PlanCommand> kPlanFlags[] = {
    {{.name = "--scripts", .value = "DIR", .help = "write the node scripts into this folder"},
     &PlanCommand::scripts},
    {{.name = "--explain", .help = "show every setting and its source"}, &PlanCommand::explain},
};

// Where a measurement decides how many threads a rank has: what it was without. Empty: none does.
std::string tuned_threads(const job::Prepared& job) {
  if (job.input.tuned_threads.empty()) return "";
  plan::PlanInput untuned = job.input;
  untuned.tuned_threads.clear();
  const auto before = plan::make_plan(untuned);
  if (!before) return "";
  constexpr const char* kName = "OMP_NUM_THREADS";
  const plan::EnvironmentChanges &now = job.plan.ranks.front().defaults,
                                 &then = before->ranks.front().defaults;
  if (!now.contains(kName) || !then.contains(kName) || now.at(kName) == then.at(kName)) return "";
  return fmt::format("{} of {} cores, as dlrun bench --tune threads measured", now.at(kName), then.at(kName));
}

void print_plan(const job::Prepared& job, Console& console) {
  const plan::Plan plan = plan::without_secrets(job.plan);
  console.out(fmt::format("job        {} ({})", plan.name, plan.framework));
  if (job.site) console.out(fmt::format("site       {} ({})", job.site->preset.title, job.site->why));
  console.out(fmt::format("allocation {}: {} node{}", job.allocation.scheduler, plan.nodes.size(),
                          plan.nodes.size() == 1 ? "" : "s"));
  console.out(
      fmt::format("processes  {}, MPI wire-up: {}", plan::to_text(plan.process), plan::to_text(plan.mpi)));
  console.out(fmt::format("directory  {}", plan.working_directory));
  if (const std::string tuned = tuned_threads(job); !tuned.empty())
    console.out(fmt::format("threads    {}", tuned));
  for (const std::string& line : parallel_lines(plan)) console.out(line);
  for (const plan::StageIn& item : plan.stage.items)
    console.out(fmt::format("stage      {} -> {}/{} ({}{}{})", item.from, plan.stage.folder, item.name,
                            item.to, item.unpack ? ", unpacked" : "", item.reuse ? ", kept" : ""));
  console.out("");
  print_plan_table(plan, console);
  for (const auto* warnings : {&job.spec.warnings, &job.allocation.warnings})
    for (const std::string& warning : *warnings) console.say("dlrun: warning: " + warning);
}

// The values that the planner derived for keys that the job does not set.
std::vector<plan::Explained> derived(const job::Prepared& job) {
  std::vector<plan::Explained> out;
  if (job.site) out.push_back({"site", job.site->preset.name, job.site->why});
  const plan::Resources& asked = job.spec.resources;
  if (!asked.nodes)
    out.push_back({"resources.nodes", std::to_string(job.allocation.nodes.size()),
                   "all of the allocation (" + job.allocation.scheduler + ")"});
  const bool by_slots =
      plan::leaves_tasks_to_slots(asked) && plan::slots_were_asked_for(job.allocation.nodes);
  if (by_slots && job.spec.roles.empty())
    out.push_back({"resources.tasks-per-node", "the slots of each node",
                   "requested (" + job.allocation.scheduler + ")"});
  else if (!asked.tasks_per_node && job.spec.roles.empty())
    out.push_back(
        {"resources.tasks-per-node", std::to_string(plan::tasks_per_node(asked)),
         asked.gpus_per_node ? "one per GPU, from resources.gpus-per-node" : "default: no gpus-per-node"});
  std::map<std::string, int> roles;
  for (const plan::RankPlan& rank : job.plan.ranks) ++roles[rank.role];
  for (const auto& [name, count] : roles)
    if (!plan::has_workers_alone(job.spec, job.adapter) && plan::place_of(job.spec, "roles." + name).empty())
      out.push_back({"roles." + name + ".count", std::to_string(count), "framework " + job.adapter.name});
  if (const std::string tuned = tuned_threads(job); !tuned.empty())
    out.push_back(
        {"environment.set.OMP_NUM_THREADS", job.plan.ranks.front().defaults.at("OMP_NUM_THREADS"), tuned});
  out.push_back({"launch.mpi", std::string(plan::to_text(job.plan.mpi)),
                 job.spec.launch.mpi != "auto" ? plan::place_of(job.spec, "launch.mpi")
                 : job.adapter.mpi == "auto" || job.adapter.mpi == "detect"
                     ? "the program's own MPI library"
                     : "framework " + job.adapter.name});
  return out;
}

void hide_secrets(std::vector<plan::Explained>& lines, const std::vector<std::string>& further) {
  constexpr std::string_view variables = "environment.set.";
  Argv command;
  for (plan::Explained& line : lines) {
    if (line.path.starts_with(variables) && plan::is_secret(line.path.substr(variables.size()), further))
      line.value = plan::kHidden;
    if (line.path.starts_with("environment.setup["))
      line.value = plan::without_secret_values(line.value, further);
    if (line.path.starts_with("command[")) command.push_back(line.value);
  }
  command = plan::without_secret_values(std::move(command), further);
  auto word = command.begin();
  for (plan::Explained& line : lines)
    if (line.path.starts_with("command[")) line.value = *word++;
}

// What was read, and what stands in the file.
void show_expansions(std::vector<plan::Explained>& lines, const std::vector<plan::Expansion>& expansions) {
  for (plan::Explained& line : lines)
    for (const plan::Expansion& expansion : expansions)
      if (expansion.path == line.path) {
        line.source += fmt::format(", written {}", line.value);
        line.value = expansion.value;
      }
}

Result<void> print_explained(const job::Prepared& job, const Context& context) {
  auto lines = plan::explain(job.tree);
  show_expansions(lines, job.spec.expansions);
  hide_secrets(lines, job.spec.environment.rules.secrets);
  for (plan::Explained& line : derived(job)) {
    std::erase_if(lines, [&](const plan::Explained& other) { return other.path == line.path; });
    lines.push_back(std::move(line));
  }
  if (context.common.json) {
    Json settings = Json::array();
    for (const auto& line : lines)
      settings.push_back({{"path", line.path}, {"value", line.value}, {"source", line.source}});
    return context.console.data(to_pretty_text({{"schema", "dlrun.explain/1"}, {"settings", settings}}));
  }
  std::size_t path_width = 0, value_width = 0;
  for (const auto& line : lines) {
    path_width = std::max(path_width, line.path.size());
    value_width = std::max(value_width, std::min<std::size_t>(line.value.size(), 40));
  }
  for (const auto& line : lines)
    context.console.out(fmt::format("{:<{}}  {:<{}}  {}", line.path, path_width, line.value, value_width,
                                    context.console.tinted_out(line.source, Tint::dim)));
  return {};
}

// What the plan does not know before the nodes have answered.
std::string still_asked(const job::Prepared& job) {
  if (job.plan.hypothetical_nodes) return {};
  return plan::asked_at_the_start(job.allocation, plan::questions_about(job.allocation, job.plan, job.spec));
}

}  // namespace

const char* const PlanCommand::kExamples = R"(Examples:
  dlrun plan train.yaml                             what would run where
  dlrun plan --json train.yaml                      the plan itself
  dlrun plan --explain train.yaml                   every setting and where it came from
  dlrun plan --allocation alloc.json train.yaml     for a cluster that is not there
  dlrun plan --scripts scripts train.yaml           write the node scripts)";

void PlanCommand::add(Arguments& arguments) {
  add_job(arguments, job);
  arguments.flags<PlanCommand>(kPlanFlags, *this);
}

Result<void> PlanCommand::finish(const ExtraArguments& extra) {
  job.program = extra.of_program;
  return {};
}

Result<int> PlanCommand::run(const Context& context) {
  job::Request request = TRY(request_of(job, context.environment));
  request.preview = true;
  if (job.sets_key("resources.nodes")) request.missing_nodes = job::MissingNodes::invent;
  job::Prepared prepared = TRY(job::prepare(request, SystemClock().now()));
  TRY(job::run_plan_checks(prepared, request.environment));
  if (prepared.plan.hypothetical_nodes)
    context.console.say(
        fmt::format("dlrun: not inside a batch job: planning for {} placeholder node(s) ({}, ...)",
                    prepared.plan.nodes.size(), prepared.plan.nodes.front().host));
  const std::string asked = still_asked(prepared);
  if (!scripts.empty() && plan::has_stand_ins(prepared.plan))
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = asked + ": their scripts cannot be written before",
                      .where = {},
                      .hint = "list them in the allocation (gpus=4 in a host file)",
                      .also = {}});
  if (!asked.empty()) context.console.say("dlrun: " + asked);
  if (!scripts.empty()) {
    TRY(job::write_node_scripts(prepared.plan, request.installation.data, scripts));
    context.console.say(
        fmt::format("dlrun: wrote {} node script(s) into {}", prepared.plan.nodes.size(), scripts));
  }
  if (explain)
    TRY(print_explained(prepared, context));
  else if (context.common.json)
    TRY(context.console.data(plan::to_pretty_text(plan::without_secrets(std::move(prepared.plan)))));
  else
    print_plan(prepared, context.console);
  return 0;
}

}  // namespace dlrun::cli
