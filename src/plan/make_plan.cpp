#include "src/plan/make_plan.hpp"

#include <algorithm>
#include <map>

#include "schedulers/scheduler.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/plan/container.hpp"
#include "src/plan/exec_limits.hpp"
#include "src/plan/gpu_view.hpp"
#include "src/plan/host_facts.hpp"
#include "src/plan/hypothetical_nodes.hpp"
#include "src/plan/nested_launcher.hpp"
#include "src/plan/parallel_checks.hpp"
#include "src/plan/parallel_facts.hpp"
#include "src/plan/placement.hpp"
#include "src/plan/role_facts.hpp"
#include "src/plan/secrets.hpp"
#include "src/plan/stage_in.hpp"
#include "src/plan/stage_paths.hpp"
#include "src/plan/wrap.hpp"

namespace dlrun::plan {
namespace {

// What the job file may say and this version does not do yet: refused, since ignoring it would run another
// job.
Result<void> check_supported(const JobSpec& spec) {
  const auto refuse = [&](std::string_view path, std::string what, std::string hint) {
    return fail(Error{.kind = ErrorKind::input,
                      .what = std::move(what),
                      .where = place_of(spec, path),
                      .hint = std::move(hint)});
  };
  for (const std::string_view name : kDeviceVariables)
    if (spec.resources.gpus_per_node && spec.environment.set.contains(std::string(name)))
      return refuse("environment.set." + std::string(name),
                    fmt::format("{} is set here, and gpus-per-node makes dlrun set it", name),
                    "remove one of the two");
  return {};
}

Result<MpiProtocol> protocol(const PlanInput& input) {
  const std::string requested = requested_mpi(input.spec, input.adapter);
  for (const MpiProtocol known :
       {MpiProtocol::none, MpiProtocol::pmix, MpiProtocol::pmi1, MpiProtocol::native})
    if (to_text(known) == requested) return known;
  if (input.detected_mpi) return *input.detected_mpi;
  return fail(ErrorKind::internal, "mpi: auto reached the planner unresolved");
}

Result<MpiProtocol> checked_protocol(const PlanInput& input) {
  const MpiProtocol out = TRY(protocol(input));
  if (out != MpiProtocol::native || input.allocation.scheduler != "local") return out;
  const bool by_adapter = input.spec.launch.mpi == "auto";
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("{}: native needs the launcher of a scheduler, and this machine has none",
                                by_adapter ? "mpi" : "launch.mpi"),
            .where = by_adapter ? input.adapter.source : place_of(input.spec, "launch.mpi"),
            .hint = by_adapter ? "use launch.mpi: pmix or pmi1, or run it in a job of a scheduler"
                               : "use auto, pmix or pmi1"});
}

Result<std::optional<Elastic>> checked_elastic(const JobSpec& spec, const Plan& plan) {
  if (!spec.elastic) return std::optional<Elastic>();
  const auto refuse = [&](std::string_view key, int value, std::size_t there, std::string_view what) {
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("elastic.{} is {}, but the job has {} {}{}", key, value, there,
                                          what, there == 1 ? "" : "s"),
                      .where = place_of(spec, fmt::format("elastic.{}", key)),
                      .hint = fmt::format("set elastic.{} to at most {}", key, there)});
  };
  if (plan.ranks.back().role != plan.ranks.front().role)
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("elastic and roles.{} are both set: what a lost {} had would be gone",
                                  plan.ranks.back().role, plan.ranks.back().role),
              .where = place_of(spec, "elastic"),
              .hint = fmt::format("remove elastic or roles.{}", plan.ranks.back().role)});
  if (spec.elastic->min_nodes > static_cast<int>(plan.nodes.size()))
    return refuse("min-nodes", spec.elastic->min_nodes, plan.nodes.size(), "node");
  if (spec.elastic->min_ranks > plan.world_size())
    return refuse("min-ranks", spec.elastic->min_ranks, plan.ranks.size(), "rank");
  return spec.elastic;
}

// What is in an environment that was copied names the place where it was made: its own word is not enough.
std::string activate_staged(const std::string& path) {
  const std::string folder = shell_quote(path);
  return fmt::format("source {0}/bin/activate && export VIRTUAL_ENV={0} PATH={0}/bin:\"$PATH\"", folder);
}

Prolog prolog_of(const JobEnvironment& environment, const Stage& stage) {
  Prolog out{.module_paths = environment.module_paths,
             .modules = environment.modules,
             .activate = {},
             .setup = environment.setup,
             .needs = {}};
  if (environment.activate.starts_with("venv:"))
    out.activate = "source " + shell_quote(environment.activate.substr(5) + "/bin/activate");
  if (!stage.empty() && environment.activate.starts_with("venv:" + stage.folder + "/"))
    out.activate = activate_staged(environment.activate.substr(5));
  if (environment.activate.starts_with("conda:"))
    out.activate = "eval \"$(\"${CONDA_EXE:-conda}\" shell.bash hook)\" && conda activate " +
                   shell_quote(environment.activate.substr(6));
  return out;
}

// What a program said of its end may be long, and is anything; variables are text on one line.
std::string reason_text(const std::string& reason) {
  constexpr std::size_t most = 1000;
  const std::string line = reason.substr(0, std::min(reason.find('\n'), most));
  return is_json_text(line) ? line : "the attempt before failed";
}

EnvironmentChanges stage_variables(const Stage& stage) {
  EnvironmentChanges out;
  if (stage.empty()) return out;
  out[std::string(kStageVariable)] = stage.folder;
  for (const StageIn& item : stage.items) out[stage_variable(item.name)] = stage.path_of(item);
  return out;
}

EnvironmentChanges common_environment(const Plan& plan, const std::optional<PreviousAttempt>& previous) {
  EnvironmentChanges out = {{"DLRUN_SIZE", std::to_string(plan.world_size())},
                            {"DLRUN_NODES", std::to_string(plan.nodes.size())},
                            {"DLRUN_RUN_DIR", plan.run_directory},
                            {"DLRUN_JOB_ID", plan.job_id},
                            {"DLRUN_ATTEMPT", std::to_string(plan.attempt)}};
  if (!previous) return out;
  out["DLRUN_PREVIOUS_SIZE"] = std::to_string(previous->ranks);
  out["DLRUN_PREVIOUS_END"] = reason_text(previous->reason);
  out["DLRUN_LEFT_OUT"] = join(previous->left_out, ",");
  return out;
}

void set_place(RankPlan& rank, int node_ranks) {
  rank.environment["DLRUN_RANK"] = fmt::format("{}", rank.rank);
  rank.environment["DLRUN_LOCAL_RANK"] = fmt::format("{}", rank.local_rank);
  rank.environment["DLRUN_LOCAL_SIZE"] = std::to_string(node_ranks);
  rank.environment["DLRUN_NODE"] = fmt::format("{}", rank.node);
  rank.environment["DLRUN_ROLE"] = rank.role;
  rank.environment["DLRUN_TASK_INDEX"] = std::to_string(rank.task_index);
}

// Indices name GPUs only together with their order.
void set_devices(RankPlan& rank, const std::optional<int>& threads, std::optional<GpuVendor> vendor) {
  if (threads) rank.defaults["OMP_NUM_THREADS"] = std::to_string(*threads);
  if (!rank.gpus) return;
  const bool of_intel = vendor == GpuVendor::intel;
  rank.defaults[of_intel ? "ZE_ENABLE_PCI_ID_DEVICE_ORDER" : "CUDA_DEVICE_ORDER"] =
      of_intel ? "1" : "PCI_BUS_ID";
  for (const auto& [name, value] : device_variables(rank, vendor)) rank.environment[name] = value;
}

const RoleKind* kind_of(const Adapter& adapter, const RankPlan& rank) {
  const auto found = std::find_if(adapter.roles.begin(), adapter.roles.end(),
                                  [&](const RoleKind& kind) { return kind.name == rank.role; });
  return found == adapter.roles.end() ? nullptr : &*found;
}

Result<Argv> argv_of_rank(const PlanInput& input, const RoleKind* kind, const Facts& facts) {
  if (kind != nullptr && !kind->command.empty()) return fill_words(kind->command, facts);
  Argv out = TRY(fill_words(input.adapter.prefix, facts));
  for (std::string& word : TRY(fill_words(input.adapter.command, facts))) out.push_back(std::move(word));
  out.insert(out.end(), input.spec.command.begin(), input.spec.command.end());
  for (std::string& word : TRY(fill_words(input.adapter.suffix, facts))) out.push_back(std::move(word));
  if (out.empty())
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("framework {} has no command, and the job sets none", input.adapter.name),
              .where = input.spec.tree.source});
  return out;
}

// Plans are JSON, and a program's words end at a NUL: other bytes would arrive changed.
Result<void> check_text(std::string_view text, std::string_view what) {
  if (text.find('\0') != std::string_view::npos)
    return fail(ErrorKind::input, "{} has a NUL character, which no argument may have", what);
  if (is_json_text(text)) return {};
  return fail(ErrorKind::input, "{} is not UTF-8 text: {}", what, dlrun::to_text(Json(std::string(text))));
}

Result<void> check_texts(const PlanInput& input) {
  for (std::size_t i = 0; i < input.spec.command.size(); ++i)
    TRY(check_text(input.spec.command[i], fmt::format("word {} of the command", i + 1)));
  if (input.spec.launch.wrap)
    for (const std::string& word : input.spec.launch.wrap->command)
      TRY(check_text(word, "launch.wrap.command"));
  for (const auto& [name, value] : input.spec.environment.set)
    if (auto checked = check_text(value, "environment.set." + name); !checked) {
      if (!is_secret(name, input.spec.environment.rules.secrets)) return checked;
      return fail(ErrorKind::input, "environment.set.{} is not UTF-8 text without NULs", name);
    }
  for (const std::string& line : input.spec.environment.setup) TRY(check_text(line, "environment.setup"));
  for (const std::string& path : input.spec.environment.module_paths)
    TRY(check_text(path, "environment.module-paths"));
  TRY(check_text(input.spec.environment.activate, "environment.activate"));
  TRY(check_text(input.run_directory, "the run directory"));
  TRY(check_text(input.working_directory, "the working directory"));
  return check_text(input.spec.base_directory.string(), "the job file's folder");
}

ContainerUse container_use(const Plan& plan, const RankPlan& rank, std::optional<GpuVendor> vendor) {
  ContainerUse out{.folders = {plan.working_directory},
                   .working_directory = plan.working_directory,
                   .host = plan.nodes[static_cast<std::size_t>(rank.node.get())].host.get(),
                   .gpus = rank.gpus && !rank.gpus->empty(),
                   .gpu_vendor = vendor,
                   .variables = {},
                   .copies = {}};
  if (plan.run_directory != plan.working_directory) out.folders.push_back(plan.run_directory);
  if (!plan.stage.empty()) out.folders.push_back(plan.stage.folder);
  for (const StageIn& item : plan.stage.items)
    if (item.to.starts_with('/')) out.folders.push_back(item.to);
  for (const auto* changes :
       {&plan.environment, &rank.environment, &rank.defaults, &plan.interface_variables})
    for (const auto& [name, value] : *changes) {
      constexpr std::string_view copy = "DLRUN_SET_";
      if (name.starts_with(copy))
        out.copies.push_back(name.substr(copy.size()));
      else
        out.variables.push_back(name);
    }
  return out;
}

// The scheduler's own variables. None is set where the framework's launcher starts the processes (per-job):
// it would read these as its options.
EnvironmentChanges scheduler_variables(const Allocation& allocation, const Plan& plan) {
  const VariableRules& rules = scheduler_of(allocation).variables;
  if (rules.of_step == nullptr || plan.process == ProcessModel::per_job) return {};
  StepShape step{.ranks = plan.world_size(), .ranks_of_node = std::vector<int>(plan.nodes.size(), 0)};
  for (const RankPlan& rank : plan.ranks) ++step.ranks_of_node[static_cast<std::size_t>(rank.node.get())];
  return rules.of_step(step);
}

EnvironmentChanges scheduler_variables(const Allocation& allocation, const Plan& plan, const RankPlan& rank) {
  const VariableRules& rules = scheduler_of(allocation).variables;
  if (rules.of_rank == nullptr || plan.process == ProcessModel::per_job) return {};
  return rules.of_rank({rank.rank.get(), rank.local_rank.get(), rank.node.get()});
}

Result<void> fill_job(Plan& plan, const PlanInput& input, const Facts& facts) {
  plan.environment = common_environment(plan, input.previous);
  plan.environment.merge(stage_variables(plan.stage));
  plan.environment.merge(scheduler_variables(input.allocation, plan));
  TRY(fill_variables(plan.environment, input.adapter.variables, facts, Scope::job));
  for (const auto& [name, value] : input.spec.environment.set) plan.environment[name] = value;
  if (plan.elastic) plan.environment["DLRUN_COMM"] = "elastic";
  if (plan.parallel) plan.environment.merge(parallel_variables(*plan.parallel));
  const bool no_mpi_found = input.adapter.mpi == "detect" && plan.mpi == MpiProtocol::none;
  if (plan.nodes.size() > 1 && !no_mpi_found) plan.interface_variables = input.adapter.interfaces;
  for (const auto& [name, text] : input.adapter.files) plan.files[name] = TRY(text.evaluate(facts));
  TRY(check_facts(input.adapter.needs, input.adapter.name, facts));
  plan.prolog.needs = probes(input.adapter.needs, input.adapter.name, input.spec.command);
  if (input.spec.environment.container)
    set_over_image(*input.spec.environment.container, plan.environment_rules, plan.environment);
  if (input.spec.environment.container)
    for (Argv& probe : plan.prolog.needs)
      probe = in_container(*input.spec.environment.container, input.spec.base_directory,
                           container_use(plan, plan.ranks.front(), {}), probe);
  for (const auto& check : input.adapter.checks) plan.checks.push_back(TRY(fill_words(check, facts)));
  return check_lengths(plan.environment, "the job");
}

// By the plan's nodes; unset where nothing tells.
std::vector<std::optional<GpuVendor>> gpu_vendors(const Plan& plan, const Allocation& allocation) {
  std::map<std::string_view, GpuVendor> told;
  for (const AllocatedNode& node : allocation.nodes)
    if (node.gpu_vendor) told.emplace(node.host.get(), *node.gpu_vendor);
  std::vector<std::optional<GpuVendor>> out(plan.nodes.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    if (const auto found = told.find(plan.nodes[i].host.get()); found != told.end()) out[i] = found->second;
  return out;
}

// What was measured on the processors of a node; of one that told no model, on those of this machine.
const ThreadsByCores& tuned_on(const std::string& host, const PlanInput& input) {
  static const ThreadsByCores none;
  const auto model = input.cpu_models.find(host);
  if (model == input.cpu_models.end()) return input.tuned_threads;
  const auto found = input.tuned_by_model.find(model->second);
  return found == input.tuned_by_model.end() ? none : found->second;
}

std::optional<int> tuned_threads(const std::optional<int>& cores, const ThreadsByCores& tuned) {
  const auto found = cores ? tuned.find(*cores) : tuned.end();
  return found == tuned.end() ? std::nullopt : std::optional(found->second);
}

std::vector<RankShare> shares_of(const Plan& plan, const Placed& placed, const PlanInput& input) {
  const std::vector<std::optional<GpuVendor>> vendors = gpu_vendors(plan, input.allocation);
  std::vector<RankShare> out(plan.ranks.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto node = static_cast<std::size_t>(plan.ranks[i].node.get());
    out[i].node_ranks = placed.ranks_per_node[node];
    out[i].node_tasks = placed.tasks_per_node[node];
    out[i].cores = placed.cores[i];
    out[i].reserve_cpus = input.adapter.reserve_cpus;
    out[i].gpu_vendor = vendors[node];
    out[i].tuned_threads = tuned_threads(placed.cores[i], tuned_on(plan.nodes[node].host.get(), input));
  }
  set_role_places(out, plan);
  return out;
}

Result<void> fill_rank(RankPlan& rank, const Plan& plan, const PlanInput& input, const Facts& facts,
                       const RankShare& share) {
  set_place(rank, share.node_ranks);
  if (rank.group_ranks) rank.environment.merge(parallel_variables(*rank.group_ranks));
  rank.environment.merge(scheduler_variables(input.allocation, plan, rank));
  const RoleKind* kind = kind_of(input.adapter, rank);
  TRY(fill_variables(rank.environment, input.adapter.variables, facts, Scope::rank));
  if (kind != nullptr)
    for (const Scope scope : {Scope::job, Scope::rank})
      TRY(fill_variables(rank.environment, kind->variables, facts, scope));
  for (const Scope scope : {Scope::job, Scope::rank})
    TRY(fill_variables(rank.defaults, input.adapter.defaults, facts, scope));
  for (const auto& [name, value] : input.spec.environment.defaults) rank.defaults[name] = value;
  // The user's word is the last one, also over what the adapter says about single ranks.
  for (const auto& [name, value] : input.spec.environment.set) rank.environment.erase(name);
  std::optional<int> threads = share.cores;
  if (threads) threads = std::max(1, *threads - share.reserve_cpus);
  if (share.tuned_threads) threads = share.tuned_threads;
  if (input.spec.environment.defaults.contains("OMP_NUM_THREADS")) threads.reset();
  set_devices(rank, threads, share.gpu_vendor);
  // glibc's malloc then asks the kernel for huge pages; programs with an allocator of their own do as they
  // do.
  if (input.spec.launch.memory.huge_pages == HugePages::on)
    rank.defaults["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1";
  for (const auto& [name, value] : input.spec.environment.set) rank.defaults.erase(name);
  rank.defaults.erase_if([&](const auto& entry) { return input.environment.find(entry.first); });
  rank.argv = wrapped(input.spec.launch.wrap, rank.rank, TRY(argv_of_rank(input, kind, facts)));
  if (input.spec.environment.container)
    set_over_image(*input.spec.environment.container, plan.environment_rules, rank.environment);
  if (input.spec.environment.container)
    rank.argv = in_container(*input.spec.environment.container, input.spec.base_directory,
                             container_use(plan, rank, share.gpu_vendor), rank.argv);
  rank.environment.shrink_to_fit();
  const std::string whose = fmt::format("rank {} ({} {})", rank.rank, rank.role, rank.task_index);
  TRY(check_lengths(rank.environment, whose));
  TRY(check_lengths(rank.defaults, whose));
  return check_lengths(rank.argv, whose);
}

// The processes that a framework starts itself learn their places in groups from it.
void set_group_ranks(Plan& plan) {
  if (!plan.parallel || plan.process != ProcessModel::per_rank) return;
  for (RankPlan& rank : plan.ranks)
    if (!rank.service) rank.group_ranks = group_ranks(*plan.parallel, rank.task_index);
}

bool uses_rendezvous_port(const Adapter& adapter) {
  const auto names_it = [](const std::string& fact) {
    return fact == "rendezvous.port" || fact == "rendezvous.address";
  };
  const auto in = [&](const FactText& text) {
    const std::vector<std::string> facts = text.facts();
    return std::any_of(facts.begin(), facts.end(), names_it);
  };
  for (const auto* variables : {&adapter.variables, &adapter.defaults})
    for (const AdapterVariable& variable : *variables)
      if (names_it(variable.json_fact) || (variable.text && in(*variable.text))) return true;
  for (const auto* words : {&adapter.prefix, &adapter.command, &adapter.suffix})
    if (std::any_of(words->begin(), words->end(), [&](const AdapterWord& word) { return in(word.text); }))
      return true;
  return std::any_of(adapter.files.begin(), adapter.files.end(),
                     [&](const auto& file) { return in(file.second); });
}

// The rendezvous port, skipping ports in use; unset if the framework's adapter does not use one.
std::optional<int> free_rendezvous_port(const Plan& plan, const PlanInput& input) {
  if (!uses_rendezvous_port(input.adapter)) return std::nullopt;
  int port = rendezvous_port(plan.job_id, plan.attempt);
  const NodePlan& first = plan.nodes[static_cast<std::size_t>(plan.ranks.front().node.get())];
  if (const auto taken = input.taken_ports.find(first.host.get()); taken != input.taken_ports.end())
    while (taken->second.contains(port)) ++port;
  return port;
}

// Ranks of our own trainer wait in a collective for the one that failed, and look at no signal there; all
// that can still end well is a checkpoint that is being written. The user's own word stands.
Seconds grace_after_failure(const PlanInput& input) {
  const Seconds grace = input.spec.launch.grace;
  const bool own_trainer = !input.adapter.command.empty();
  const bool by_user = !place_of(input.spec, "launch.grace").empty();
  return own_trainer && !by_user ? std::min(grace, Seconds(2)) : grace;
}

// Of a job without placeholders.
Result<Plan> plan_of(const PlanInput& input) {
  TRY(check_supported(input.spec));
  TRY(check_texts(input));
  Placed placed = TRY(place(input.spec, TRY(roles_of_job(input.spec, input.adapter)), input.allocation,
                            input.adapter.process, input.taken_ports));
  Plan plan;
  plan.name = input.spec.name;
  plan.job_id = input.job_id;
  plan.attempt = input.attempt;
  plan.framework = input.adapter.name;
  plan.process = input.adapter.process;
  plan.mpi = TRY(checked_protocol(input));
  TRY(check_container(input.spec, plan.mpi));
  plan.run_directory = input.run_directory;
  plan.working_directory =
      input.working_directory.empty() ? input.spec.base_directory.string() : input.working_directory;
  if (!input.spec.stage.empty()) plan.stage = {stage_folder(input.job_id), input.spec.stage};
  plan.prolog = prolog_of(input.spec.environment, plan.stage);
  plan.environment_rules = input.spec.environment.rules;
  plan.limits = {.start_timeout = input.spec.launch.start_timeout,
                 .setup_timeout = input.spec.launch.setup_timeout,
                 .grace = input.spec.launch.grace,
                 .grace_after_failure = grace_after_failure(input),
                 .lost_after = input.spec.launch.lost_after,
                 .no_output = input.spec.launch.no_output,
                 .no_progress = input.spec.launch.no_progress,
                 .finalize = input.spec.launch.finalize};
  plan.memory = input.spec.launch.memory;
  plan.hypothetical_nodes = input.allocation.scheduler == kHypotheticalNodes;
  plan.nodes = std::move(placed.nodes);
  plan.ranks = std::move(placed.ranks);
  plan.elastic = TRY(checked_elastic(input.spec, plan));
  plan.parallel = TRY(checked_parallel(input.spec, input.adapter, plan, placed.tasks_per_node));
  set_group_ranks(plan);
  TRY(check_wrap(input.spec, plan));
  TRY(check_nested_launcher(input.spec, input.adapter, plan));
  set_visible_gpus(plan.ranks, input.adapter.gpu_view);
  plan.rendezvous_port = free_rendezvous_port(plan, input);
  Facts facts = facts_of_job(plan, input.spec, input.installation, placed.tasks_per_node);
  std::vector<std::string> role_names;
  for (const RoleKind& kind : input.adapter.roles) role_names.push_back(kind.name);
  add_role_facts(facts, plan, role_names);
  TRY(fill_job(plan, input, facts));
  const std::vector<RankShare> shares = shares_of(plan, placed, input);
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    set_facts_of_rank(facts, plan, plan.ranks[i], shares[i]);
    TRY(fill_rank(plan.ranks[i], plan, input, facts, shares[i]));
  }
  return plan;
}

}  // namespace

std::string requested_mpi(const JobSpec& spec, const Adapter& adapter) {
  if (spec.elastic) return "none";
  return spec.launch.mpi == "auto" ? adapter.mpi : spec.launch.mpi;
}

Result<Plan> make_plan(const PlanInput& input) {
  if (input.spec.stage.empty()) return plan_of(input);
  PlanInput with_paths = input;
  with_paths.spec = with_stage_paths(input.spec, stage_folder(input.job_id));
  return plan_of(with_paths);
}

}  // namespace dlrun::plan
