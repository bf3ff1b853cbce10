// One step over all nodes of the plan, beside whatever else runs in the job. It inherits nothing from the
// job's own task options: a step of one agent a node is not what those were meant for.
#include "src/launch/slurm.hpp"

#include <array>
#include <map>
#include <set>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::launch {
namespace {

// Options that srun would take from the environment. Two of the memory ones together are an error to it, and
// a --cpus-per-task that differs from SLURM_TRES_PER_TASK as well.
constexpr std::array<std::string_view, 26> kTaskOptions{
    "SLURM_NTASKS",           "SLURM_NPROCS",         "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_CORE",  "SLURM_NTASKS_PER_GPU", "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",     "SLURM_TRES_PER_TASK",  "SLURM_CPUS_PER_GPU",
    "SLURM_GPUS_PER_TASK",    "SLURM_GPU_BIND",       "SLURM_CPU_BIND",
    "SLURM_MEM_BIND",         "SLURM_DISTRIBUTION",   "SLURM_HINT",
    "SLURM_THREADS_PER_CORE", "SLURM_EXACT",          "SLURM_EXCLUSIVE",
    "SLURM_MPI_TYPE",         "SLURM_KILL_BAD_EXIT",  "SLURM_WAIT",
    "SLURM_NO_KILL",          "SLURM_EXPORT_ENV",     "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",       "SLURM_STDERRMODE"};

Environment for_srun(Environment environment) {
  for (const std::string_view name : kTaskOptions) environment.unset(name);
  if (environment.find("SLURM_MEM_PER_NODE")) {
    environment.unset("SLURM_MEM_PER_CPU");
    environment.unset("SLURM_MEM_PER_GPU");
  }
  return environment;
}

// Slurm's PMIx has two fences over nodes, and mixes them: the tree lets ranks out before all are in (seen
// with Slurm 22.05: Open MPI died in MPI_Init in 41 of 240 jobs of 8 ranks, and in none of 120 with the
// ring).
Environment for_ranks(Environment environment) {
  environment = for_srun(std::move(environment));
  if (!environment.find("SLURM_PMIX_FENCE")) environment.set("SLURM_PMIX_FENCE", "ring");
  return environment;
}

}  // namespace

std::optional<EndedTasks> parse_srun_task_end(const std::string& line) {
  constexpr std::string_view start = "srun: error: ", task = ": task", code = ": Exited with exit code ";
  const std::size_t hosts_end = line.find(task), code_at = line.find(code);
  if (!line.starts_with(start) || hosts_end == std::string::npos || code_at == std::string::npos)
    return std::nullopt;
  auto hosts = expand_hostlist(line.substr(start.size(), hosts_end - start.size()));
  const auto number = parse_integer(trim(line.substr(code_at + code.size())), 0, 255);
  if (!hosts || !number) return std::nullopt;
  return EndedTasks{std::move(*hosts), static_cast<int>(*number)};
}

namespace {

struct Step {
  std::string het_group;  // empty: the job has no groups
  std::vector<plan::NodePlan> nodes;
};

EngineCommand srun_command(const Step& step, const AgentCommand& agent, const SlurmVersion& version,
                           const Environment& environment) {
  std::vector<HostName> hosts;
  EngineCommand out;
  for (const plan::NodePlan& node : step.nodes) {
    hosts.push_back(node.host);
    out.nodes.push_back(node.index);
  }
  const std::string count = std::to_string(hosts.size());
  out.argv = {"srun"};
  if (!step.het_group.empty()) out.argv.push_back("--het-group=" + step.het_group);
  for (std::string word :
       {"--nodes=" + count, "--ntasks=" + count, std::string("--ntasks-per-node=1"),
        "--nodelist=" + compress_hostlist(hosts),
        std::string("--mpi=none"),       // the agents serve the ranks' MPI
        std::string("--cpu-bind=none"),  // and bind them
        std::string("--input=none"), std::string("--export=ALL"), std::string("--kill-on-bad-exit=0"),
        std::string("--wait=0"),  // one agent's end is not the others'
        std::string("--job-name=dlrun")})
    out.argv.push_back(std::move(word));
  // Since 20.11 a step has its processors for itself unless it says otherwise; older ones do not know the
  // flag.
  if (version.major > 20 || (version.major == 20 && version.minor >= 11)) out.argv.emplace_back("--overlap");
  out.argv.insert(out.argv.end(), agent.argv.begin(), agent.argv.end());
  out.environment = for_srun(environment);
  out.chatter = {"lacks support for cpu binding"};
  out.ended_tasks = parse_srun_task_end;
  return out;
}

// The group of each host of a heterogeneous job, the first one where it is in several; empty for other jobs.
Result<std::map<std::string, int>> het_groups(const Environment& environment) {
  std::map<std::string, int> out;
  const auto groups = parse_integer(environment.get("SLURM_HET_SIZE"), 2, 1024);
  for (int i = 0; groups && i < *groups; ++i) {
    const std::string list = environment.get(fmt::format("SLURM_JOB_NODELIST_HET_GROUP_{}", i));
    for (const HostName& host : TRY(expand_hostlist(list))) out.emplace(host.get(), i);
  }
  return out;
}

Result<std::vector<Step>> steps_of(const plan::Plan& plan, const Environment& environment) {
  const auto groups = TRY(het_groups(environment));
  std::map<std::string, Step> steps;
  for (const plan::NodePlan& node : plan.nodes) {
    const auto found = groups.find(node.host.get());
    Step& step = steps[found == groups.end() ? "" : fmt::format("{:04}", found->second)];
    if (found != groups.end()) step.het_group = std::to_string(found->second);
    step.nodes.push_back(node);
  }
  std::vector<Step> out;
  for (auto& [order, step] : steps) out.push_back(std::move(step));
  return out;
}

// Where the ranks go: so many on each node, one node after another, which tells every MPI who has a node in
// common; else whatever order it is, which PMI-2 takes for a node each.
Argv layout_of(const std::vector<std::string>& hosts) {
  std::vector<HostName> nodes;
  for (const std::string& host : hosts)
    if (nodes.empty() || nodes.back().get() != host) nodes.emplace_back(host);
  const std::size_t distinct = std::set(hosts.begin(), hosts.end()).size(), each = hosts.size() / distinct;
  bool in_blocks = nodes.size() == distinct && each * distinct == hosts.size();
  for (std::size_t i = 0; in_blocks && i < hosts.size(); ++i) in_blocks = hosts[i] == nodes[i / each].get();
  Argv out{fmt::format("--nodes={}", distinct), fmt::format("--ntasks={}", hosts.size())};
  if (in_blocks)
    out.insert(out.end(), {fmt::format("--ntasks-per-node={}", each), "--distribution=block",
                           "--nodelist=" + compress_hostlist(nodes)});
  else
    out.insert(out.end(), {"--distribution=arbitrary", "--nodelist=" + join(hosts, ",")});
  return out;
}

// Agents that are MPI ranks.
EngineCommand srun_ranks(const plan::Plan& plan, const AgentCommand& agent, const SlurmVersion& version,
                         const Environment& environment) {
  const std::string type = environment.get("SLURM_MPI_TYPE");
  EngineCommand out{.argv = {"srun"},
                    .environment = for_ranks(environment),
                    .nodes = all_nodes(plan),
                    .chatter = {"lacks support for cpu binding"}};
  for (const std::string& word : layout_of(all_hosts(plan))) out.argv.push_back(word);
  out.argv.push_back("--mpi=" + (type.empty() ? slurm_mpi_type(flavour_of(plan, environment)) : type));
  for (const char* word : {"--cpu-bind=none", "--overcommit", "--input=none", "--export=ALL",
                           "--kill-on-bad-exit=0", "--wait=0", "--job-name=dlrun"})
    out.argv.emplace_back(word);
  if (version.major > 20 || (version.major == 20 && version.minor >= 11)) out.argv.emplace_back("--overlap");
  out.argv = with_agent(std::move(out.argv), agent);
  return out;
}

}  // namespace

std::string slurm_mpi_type(MpiFlavour flavour) {
  return flavour == MpiFlavour::mpich ? "pmi2" : "pmix";
}

Result<std::vector<EngineCommand>> srun_commands(const plan::Plan& plan, const AgentCommand& agent,
                                                 const SlurmVersion& version,
                                                 const Environment& environment) {
  std::vector<EngineCommand> out;
  if (plan.mpi == plan::MpiProtocol::native) {
    if (!TRY(het_groups(environment)).empty())
      return fail(
          {.kind = ErrorKind::input,
           .what =
               "launch.mpi: native is not for heterogeneous Slurm jobs, whose steps are worlds of their own",
           .hint = "use --mpi auto"});
    out.push_back(srun_ranks(plan, agent, version, environment));
    return out;
  }
  for (const Step& step : TRY(steps_of(plan, environment)))
    out.push_back(srun_command(step, agent, version, environment));
  return out;
}

Result<std::unique_ptr<Launcher>> make_slurm_launcher(const LaunchSettings& settings) {
  if (!settings.environment.find("SLURM_JOB_ID"))
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = "launch.via: slurm needs a Slurm job to stand in, and SLURM_JOB_ID is not set",
                      .where = {},
                      .hint = "run it by sbatch or salloc, or reach the nodes with --via ssh"});
  const auto asked = settings.srun_version ? settings.srun_version : SrunVersion::ask(settings.environment);
  const SlurmVersion version = TRY(asked->get());
  return make_engine_launcher(
      {.name = "slurm", .token = TokenBy::environment}, settings,
      [version, environment = settings.environment](const plan::Plan& plan, const AgentCommand& agent) {
        return srun_commands(plan, agent, version, environment);
      });
}

}  // namespace dlrun::launch
