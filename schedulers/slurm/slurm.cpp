// Slurm: the job's nodes from SLURM_JOB_NODELIST (never the step's: an interactive shell is a step of one
// node), ranks from SLURM_TASKS_PER_NODE, CPUs from SLURM_JOB_CPUS_PER_NODE; GPUs of every node and the end
// from `scontrol show job -d`. The GPU variables tell of this node alone and are never copied to another one.
// A heterogeneous job is all its groups, in their order: taking one would run smaller.
#include "schedulers/slurm/slurm.hpp"

#include <algorithm>

#include <unistd.h>

#include "schedulers/gpus/vendor_visible.hpp"
#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/node_identity.hpp"
#include "schedulers/query.hpp"
#include "schedulers/slurm/cluster_name.hpp"
#include "schedulers/slurm/gres.hpp"
#include "schedulers/slurm/job.hpp"
#include "schedulers/slurm/launch.hpp"
#include "schedulers/slurm/variables.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr std::array<std::string_view, 5> kMarks{"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST",
                                                 "SLURM_NODELIST", "SLURM_NNODES"};

struct Value {
  std::string name, text;
  std::string line() const { return name + "=" + text; }
};

// The first of these variables that is set.
std::optional<Value> first_of(const Environment& environment, std::initializer_list<std::string> names) {
  for (const std::string& name : names)
    if (const auto text = environment.find(name); text && !text->empty()) return Value{name, *text};
  return std::nullopt;
}

Result<std::vector<int>> counts_for(const Value& counts, const Value& list, std::size_t nodes) {
  auto out = TRY(expand_counts(counts.text, counts.name));
  if (out.size() != nodes)
    return fail(conflict("the node list and the counts", fmt::format("{}: {} nodes", list.line(), nodes),
                         fmt::format("{}: counts for {}", counts.line(), out.size())));
  return out;
}

Result<void> check_number(const std::optional<Value>& told, const Value& list, std::size_t nodes) {
  if (!told || told->text == std::to_string(nodes)) return {};
  return fail(conflict("the node list and the number of nodes",
                       fmt::format("{}: {} nodes", list.line(), nodes), told->line()));
}

// In a step over a part of the job, these counts are the step's and say nothing of the job.
bool counts_are_of_step(const Environment& environment, const Value& list) {
  const auto step = environment.find("SLURM_STEP_NODELIST");
  return step && *step != list.text &&
         environment.get("SLURM_STEP_NUM_NODES") != environment.get("SLURM_JOB_NUM_NODES");
}

// The nodes of one group; `suffix` is empty or _HET_GROUP_n.
Result<void> add_group(const Environment& environment, const std::string& suffix, Allocation& out) {
  const auto list = first_of(environment, {"SLURM_JOB_NODELIST" + suffix, "SLURM_NODELIST" + suffix});
  if (!list) return fail(unreadable(fmt::format("SLURM_JOB_NODELIST{} is not set", suffix), {}));
  auto hosts = expand_hostlist(list->text);
  if (!hosts) return fail(about_allocation(hosts.error(), list->name));
  out.evidence.push_back(list->line());
  TRY(check_number(first_of(environment, {"SLURM_JOB_NUM_NODES" + suffix}), *list, hosts->size()));
  const auto cpus = first_of(environment, {"SLURM_JOB_CPUS_PER_NODE" + suffix});
  auto tasks = first_of(environment, {"SLURM_TASKS_PER_NODE" + suffix});
  if (tasks && suffix.empty() && counts_are_of_step(environment, *list)) {
    out.evidence.push_back(fmt::format("{}: of the step on {}, not of the job; ignored", tasks->line(),
                                       environment.get("SLURM_STEP_NODELIST")));
    tasks.reset();
  }
  // Slurm counts tasks unasked, too; these are set where somebody gave their number.
  const auto asked = first_of(environment, {"SLURM_NTASKS" + suffix, "SLURM_NTASKS_PER_NODE" + suffix});
  std::vector<int> cpu_counts, slots(hosts->size(), 1);
  if (cpus) cpu_counts = TRY(counts_for(*cpus, *list, hosts->size()));
  if (tasks)
    slots = TRY(counts_for(*tasks, *list, hosts->size()));
  else if (cpus)
    slots = cpu_counts;
  out.evidence.push_back(tasks  ? tasks->line()
                         : cpus ? "no SLURM_TASKS_PER_NODE: one slot per CPU"
                                : "no counts: one slot per node");
  if (cpus) out.evidence.push_back(cpus->line());
  for (std::size_t i = 0; i < hosts->size(); ++i) {
    AllocatedNode node{.host = (*hosts)[i], .slots = slots[i], .cpus = {}, .gpus = {}};
    if (tasks && asked) node.asked_slots = slots[i];
    if (cpus) node.cpus = cpu_counts[i];
    out.nodes.push_back(std::move(node));
  }
  return {};
}

// A job of one node may be told by its number of nodes alone: then it is this machine.
Result<void> add_this_node(const Environment& environment, Allocation& out) {
  const std::string count = environment.get("SLURM_NNODES");
  if (count != "1")
    return fail(
        unreadable(fmt::format("SLURM_JOB_NODELIST is not set (SLURM_NNODES={})", count), {},
                   "run inside the batch script, srun or salloc; --scheduler local uses only this machine"));
  std::string host = environment.get("SLURMD_NODENAME");
  if (const MachineNames machine = this_machine(); host.empty() && !machine.names.empty())
    host = machine.names.front();
  if (host.empty()) return fail(unreadable("SLURM_NNODES=1, and this machine has no host name", {}));
  const auto tasks = parse_integer(environment.get("SLURM_NTASKS", "1"), 1, kMaxSlots);
  if (!tasks)
    return fail(
        unreadable(fmt::format("SLURM_NTASKS={} is not a count", environment.get("SLURM_NTASKS")), {}));
  out.nodes.push_back({.host = HostName(host), .slots = static_cast<int>(*tasks), .cpus = {}, .gpus = {}});
  out.evidence.push_back("SLURM_NNODES=1 without a node list: this machine, " + host);
  return {};
}

// Variables of a heterogeneous job stay behind in jobs that are submitted from it.
bool het_is_ours(const Environment& environment, std::int64_t groups) {
  const auto own = first_of(environment, {"SLURM_JOB_ID", "SLURM_JOBID"});
  bool told = false;
  for (std::int64_t i = 0; i < groups; ++i) {
    const auto id = environment.find(fmt::format("SLURM_JOB_ID_HET_GROUP_{}", i));
    if (own && id && *id == own->text) return true;
    told = told || id.has_value();
  }
  return !own || !told;
}

Result<void> add_nodes(const Environment& environment, Allocation& out) {
  const auto groups = parse_integer(environment.get("SLURM_HET_SIZE"), 2, 1024);
  const bool stale = groups && !het_is_ours(environment, *groups);
  if (stale)
    out.evidence.push_back(fmt::format("SLURM_HET_SIZE={}: left over from another job; ignored", *groups));
  if (groups && !stale) {
    out.evidence.push_back(fmt::format("SLURM_HET_SIZE={}: all groups together", *groups));
    for (std::int64_t i = 0; i < *groups; ++i)
      TRY(add_group(environment, fmt::format("_HET_GROUP_{}", i), out));
    return {};
  }
  if (first_of(environment, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"})) return add_group(environment, "", out);
  return add_this_node(environment, out);
}

// One node in two groups is one node; anything else that stands twice is not Slurm's.
Result<void> join_groups(Allocation& out) {
  const std::size_t before = out.nodes.size();
  out.nodes = TRY(group_nodes(out.nodes, "SLURM_JOB_NODELIST"));
  if (out.nodes.size() != before)
    out.evidence.push_back(fmt::format("{} entries are {} nodes", before, out.nodes.size()));
  return {};
}

void compare_tasks(const Environment& environment, Allocation& out) {
  const auto tasks = parse_integer(environment.get("SLURM_NTASKS"), 1, INT32_MAX);
  const auto each = parse_integer(environment.get("SLURM_NTASKS_PER_NODE"), 1, INT32_MAX);
  if (!tasks || !each || environment.find("SLURM_HET_SIZE")) return;
  const auto nodes = static_cast<std::int64_t>(out.nodes.size());
  if (*tasks > *each * nodes || (nodes == 1 && *tasks != *each))
    out.warnings.push_back(
        fmt::format("SLURM_NTASKS ({}) and SLURM_NTASKS_PER_NODE ({}) disagree; Slurm starts SLURM_NTASKS",
                    *tasks, *each));
}

// This node's GPUs by its variables.
std::optional<Value> gpu_variable(const Environment& environment) {
  return first_of(environment, {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL"});
}

std::optional<std::size_t> this_node(const Environment& environment, const Allocation& out) {
  std::vector<HostName> names;
  for (const AllocatedNode& node : out.nodes) names.push_back(node.host);
  const NodeFinder finder(names);
  if (const auto told = environment.find("SLURMD_NODENAME"))
    if (const auto found = finder.find(*told); found && *found) return *found;
  if (out.nodes.size() == 1) return 0;
  const auto found = find_machine(finder, this_machine());
  return found ? *found : std::nullopt;
}

std::vector<std::string> as_names(const std::vector<int>& indices) {
  std::vector<std::string> out;
  for (const int index : indices) out.push_back(std::to_string(index));
  return out;
}

// What the variables of the GPUs' libraries leave visible.
void add_visible_gpus(const Environment& environment, AllocatedNode& node, Allocation& out) {
  FoundGpus seen = usable_gpus({}, environment);
  if (!seen.names) return;
  node.gpus = std::move(seen.names);
  if (seen.warning) out.warnings.push_back(*seen.warning);
  out.evidence.push_back(fmt::format("{}: of {} alone", seen.evidence, node.host));
}

Result<void> add_own_gpus(const Environment& environment, Allocation& out) {
  const auto at = this_node(environment, out);
  if (!at) return {};
  out.nodes[*at].gpu_vendor = vendor_of_variables(environment);
  if (out.nodes[*at].gpus) return {};
  if (const auto value = gpu_variable(environment)) {
    auto indices = parse_index_list(value->text);
    if (!indices) return fail(about_allocation(indices.error(), value->name));
    out.nodes[*at].gpus = as_names(*indices);
    out.evidence.push_back(fmt::format("{}: of {} alone", value->line(), out.nodes[*at].host));
  } else {
    add_visible_gpus(environment, out.nodes[*at], out);
  }
  return {};
}

// Where there is no scontrol: from libslurm, by a dlrun of its own. Where there is one and it did not answer,
// the library would wait for the same controller.
void ask_library(const DiscoveryContext& context, Allocation& out) {
  const auto text = ask_scheduler(context, {"/proc/self/exe", "slurm-end", *out.job_id});
  const auto seconds = text ? parse_integer(std::string(trim(*text)), 1, kLastSecond) : fail(text.error());
  if (!seconds) return;
  out.end_time = Instant(std::chrono::seconds(*seconds));
  out.evidence.push_back("libslurm: end " + format_utc(*out.end_time));
}

void take_times(const Environment& environment, const std::optional<SlurmJob>& job, Allocation& out) {
  if (const auto end = environment.find("SLURM_JOB_END_TIME")) {
    if (const auto seconds = parse_integer(*end, 1, kLastSecond)) {
      out.end_time = Instant(std::chrono::seconds(*seconds));
      out.evidence.push_back("SLURM_JOB_END_TIME=" + *end);
      return;
    }
    out.evidence.push_back(fmt::format("SLURM_JOB_END_TIME={}: not a time; ignored", *end));
  }
  if (job && job->end_time) out.end_time = job->end_time;
  if (job)
    out.evidence.emplace_back(job->unlimited  ? "scontrol: no time limit"
                              : job->end_time ? "scontrol: EndTime " + format_utc(*job->end_time)
                                              : "scontrol does not report the end: unknown");
}

void take_gpus(const SlurmJob& job, Allocation& out) {
  for (AllocatedNode& node : out.nodes) {
    if (const auto found = job.gpus.find(node.host.get()); found != job.gpus.end())
      node.gpus = as_names(found->second);
    else if (const auto count = job.gpus_without_index.find(node.host.get());
             count != job.gpus_without_index.end())
      out.evidence.push_back(
          fmt::format("scontrol: {} GPUs on {}, without their indices: unknown", count->second, node.host));
  }
  if (!job.gpus.empty()) out.evidence.push_back(fmt::format("scontrol: GPUs of {} nodes", job.gpus.size()));
}

tl::unexpected<Error> left_over(const std::string& job_id, std::string_view why) {
  return fail(Error{
      .kind = ErrorKind::allocation,
      .what = fmt::format("the Slurm variables of this shell are left over: job {} {}", job_id, why),
      .hint = "unset the SLURM_* variables or open a new shell; --scheduler local uses only this machine"});
}

struct Account {
  std::optional<SlurmJob> job;
  bool no_scontrol = false;
};

Result<Account> ask_controller(const DiscoveryContext& context, Allocation& out) {
  if (!out.job_id) return Account{};
  const auto text = ask_scheduler(context, {"scontrol", "show", "job", "-d", *out.job_id});
  if (!text && text.error().what.find("Invalid job id") != std::string::npos)
    return left_over(*out.job_id, "is not known to Slurm");
  if (!text) {
    out.evidence.push_back(
        fmt::format("scontrol does not answer: {}; end and GPUs are unknown", text.error().what));
    return Account{.job = {}, .no_scontrol = text.error().kind == ErrorKind::input};
  }
  auto job = parse_scontrol_job(*text, *out.job_id);
  if (job && slurm_job_is_over(job->state)) return left_over(*out.job_id, "is over (" + job->state + ")");
  if (job) return Account{.job = std::move(*job)};
  out.warnings.push_back("cannot be parsed, and is ignored: " + job.error().text());
  return Account{};
}

std::string detect_slurm(const DiscoveryContext& context) {
  for (const std::string_view mark : kMarks)
    if (const auto value = context.environment.find(mark)) return fmt::format("{}={}", mark, *value);
  return {};
}

Result<Allocation> slurm_allocation(const DiscoveryContext& context) {
  const Environment& environment = context.environment;
  Allocation out;
  out.scheduler = "slurm";
  if (const auto id = first_of(environment, {"SLURM_JOB_ID", "SLURM_JOBID"})) out.job_id = id->text;
  if (const auto index = parse_integer(environment.get("SLURM_ARRAY_TASK_ID"), 0, INT32_MAX - 1))
    out.array_index = static_cast<int>(*index);
  TRY(add_nodes(environment, out));
  TRY(join_groups(out));
  compare_tasks(environment, out);
  const Account account = TRY(ask_controller(context, out));
  if (account.job) take_gpus(*account.job, out);
  TRY(add_own_gpus(environment, out));
  take_times(environment, account.job, out);
  if (account.no_scontrol && !out.end_time) ask_library(context, out);
  return out;
}

std::vector<EndQuestion> slurm_end_questions(const std::string& job_id) {
  using End = std::optional<Instant>;
  const auto read_scontrol = [job_id](const std::string& answer) -> Result<End> {
    const SlurmJob job = TRY(parse_scontrol_job(answer, job_id));
    if (!job.unlimited && !job.end_time) return no_end_told("scontrol", job_id);
    return job.end_time;
  };
  const auto read_libslurm = [](const std::string& answer) -> Result<End> {
    return End(Instant(std::chrono::seconds(TRY(parse_integer(std::string(trim(answer)), 1, kLastSecond)))));
  };
  return {{{"scontrol", "show", "job", "-d", job_id}, read_scontrol},
          {{"/proc/self/exe", "slurm-end", job_id}, read_libslurm}};
}

}  // namespace

Scheduler slurm_scheduler() {
  return {.name = "slurm",
          .title = "Slurm",
          .detect = detect_slurm,
          .allocation = slurm_allocation,
          .slot_division = SlotDivision::by_scheduler,  // of a total, as sbatch --ntasks
          .submission = make_slurm_submission,
          .submit_program = "sbatch",
          .submit_host = {.variable = "SLURM_CONF",
                          .files = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}},
          .cluster_name = slurm_cluster_name,
          .end_questions = slurm_end_questions,
          // Slurm compares with its controller's clock, and warns and sweeps by the minute.
          .margins = {.least = Seconds(5), .most = Seconds(60)},
          .launcher = begin_srun,
          .launcher_starts = {AgentPer::node, AgentPer::rank},
          .variables = slurm_variables()};
}

}  // namespace dlrun
