// One step over all nodes of the run, beside whatever else runs in the job. It inherits nothing from the
// job's own task options: a step of one agent per node is not what those were meant for.
#include "schedulers/slurm/launch.hpp"

#include <map>
#include <set>

#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/slurm/variables.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

// Slurm's PMIx has two fences over nodes, and mixes them: the tree lets ranks out before all are in (seen
// with Slurm 22.05: Open MPI died in MPI_Init in 41 of 240 jobs of 8 ranks, and in none of 120 with the
// ring).
Environment for_ranks(Environment environment) {
  environment = without_task_options(std::move(environment));
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
  std::vector<NodeIndex> nodes;
};

LaunchCommand srun_command(const Step& step, const AgentsToLaunch& agents, const SlurmVersion& version,
                           const Environment& environment) {
  std::vector<HostName> hosts;
  LaunchCommand out;
  out.nodes = step.nodes;
  for (const NodeIndex node : step.nodes) hosts.push_back(agents.hosts[static_cast<std::size_t>(node.get())]);
  const std::string count = std::to_string(hosts.size());
  out.argv = {"srun"};
  if (!step.het_group.empty()) out.argv.push_back("--het-group=" + step.het_group);
  for (std::string word :
       {"--nodes=" + count, "--ntasks=" + count, std::string("--ntasks-per-node=1"),
        "--nodelist=" + compress_hostlist(hosts),
        std::string("--mpi=none"),       // the agents serve the ranks' MPI
        std::string("--cpu-bind=none"),  // and bind them
        std::string("--input=none"), std::string("--export=ALL"), std::string("--kill-on-bad-exit=0"),
        std::string("--wait=0"),   // one agent's end is not the others'
        std::string("--no-kill"),  // nor is one node's
        std::string("--job-name=dlrun")})
    out.argv.push_back(std::move(word));
  // Since 20.11 a step has its processors for itself unless it says otherwise; older ones do not know the
  // flag.
  if (version.major > 20 || (version.major == 20 && version.minor >= 11)) out.argv.emplace_back("--overlap");
  out.argv = with_agent(std::move(out.argv), agents);
  out.environment = without_task_options(environment);
  out.ignored_lines = {"lacks support for cpu binding"};
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

Result<std::vector<Step>> steps_of(const std::vector<HostName>& hosts, const Environment& environment) {
  const auto groups = TRY(het_groups(environment));
  std::map<std::string, Step> steps;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto found = groups.find(hosts[i].get());
    Step& step = steps[found == groups.end() ? "" : fmt::format("{:04}", found->second)];
    if (found != groups.end()) step.het_group = std::to_string(found->second);
    step.nodes.emplace_back(static_cast<int>(i));
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
LaunchCommand srun_ranks(const AgentsToLaunch& agents, const SlurmVersion& version,
                         const Environment& environment) {
  const std::string type = environment.get("SLURM_MPI_TYPE");
  LaunchCommand out{.argv = {"srun"},
                    .environment = for_ranks(environment),
                    .nodes = all_agents(agents),
                    .ignored_lines = {"lacks support for cpu binding"}};
  for (const std::string& word : layout_of(host_names(agents))) out.argv.push_back(word);
  out.argv.push_back("--mpi=" + (type.empty() ? slurm_mpi_type(agents.mpi) : type));
  for (const char* word : {"--cpu-bind=none", "--overcommit", "--input=none", "--export=ALL",
                           "--kill-on-bad-exit=0", "--wait=0", "--job-name=dlrun"})
    out.argv.emplace_back(word);
  if (version.major > 20 || (version.major == 20 && version.minor >= 11)) out.argv.emplace_back("--overlap");
  out.argv = with_agent(std::move(out.argv), agents);
  return out;
}

}  // namespace

std::string slurm_mpi_type(MpiFlavour flavour) {
  return flavour == MpiFlavour::mpich ? "pmi2" : "pmix";
}

Result<std::vector<LaunchCommand>> srun_commands(const AgentsToLaunch& agents, const SlurmVersion& version,
                                                 const Environment& environment) {
  std::vector<LaunchCommand> out;
  if (agents.agent_per == AgentPer::rank) {
    if (!TRY(het_groups(environment)).empty())
      return fail({.kind = ErrorKind::input,
                   .what = "launch.mpi: native does not support heterogeneous Slurm jobs, in which each "
                           "component is an MPI world of its own",
                   .hint = "use --mpi auto"});
    out.push_back(srun_ranks(agents, version, environment));
    return out;
  }
  for (const Step& step : TRY(steps_of(agents.hosts, environment)))
    out.push_back(srun_command(step, agents, version, environment));
  return out;
}

PendingLauncher begin_srun(const Environment& environment) {
  if (auto inside = require_job(environment, "SLURM_JOB_ID", "slurm", "Slurm"); !inside)
    return [error = inside.error()]() -> Result<CommandTraits> { return fail(error); };
  return [asked = SrunVersion::ask(environment), environment]() -> Result<CommandTraits> {
    const SlurmVersion version = TRY(asked->get());
    return CommandTraits{
        .name = "slurm",
        .commands = [version, environment](
                        const AgentsToLaunch& agents) { return srun_commands(agents, version, environment); },
        .token = TokenBy::environment};
  };
}

}  // namespace dlrun
