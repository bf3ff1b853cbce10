// mpiexec starts the agents, one per node. It finds the site's way onto the nodes by itself (ssh, srun, pbs,
// ...). It must not count slots, bind, or end the others with one, so each of these is switched off.
#include "src/launch/mpiexec.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "src/base/strings.hpp"
#include "src/launch/command_launcher.hpp"
#include "src/process/child.hpp"
#include "src/process/command.hpp"

namespace dlrun::launch {
namespace {

// Options that a user or a site set for MPI programs, which would move or count the agents.
constexpr std::array<std::string_view, 17> kPlacement{"HYDRA_HOST_FILE",
                                                      "HYDRA_BINDING",
                                                      "HYDRA_RANK_REORDER",
                                                      "HYDRA_ENV",
                                                      "I_MPI_PERHOST",
                                                      "I_MPI_HYDRA_HOST_FILE",
                                                      "MPIEXEC_TIMEOUT",
                                                      "OMPI_MCA_rmaps_base_mapping_policy",
                                                      "OMPI_MCA_hwloc_base_binding_policy",
                                                      "OMPI_MCA_orte_default_hostfile",
                                                      "OMPI_MCA_rmaps_base_oversubscribe",
                                                      "PRTE_MCA_rmaps_default_mapping_policy",
                                                      "PALS_HOSTFILE",
                                                      "PALS_WDIR",
                                                      "PALS_DEPTH",
                                                      "PALS_ENVLIST",
                                                      "PALS_PATH"};

constexpr std::array<const char*, 4> kNames{"mpiexec", "mpirun", "mpiexec.hydra", "mpirun.openmpi"};

struct Found {
  std::string program;
  Mpiexec flavour;
};

bool is_of_pals(const std::string& name, const Environment& environment) {
  const auto program = find_program(name, environment, "");
  std::error_code problem;
  return program && is_pals_path(std::filesystem::canonical(*program, problem).string());
}

// PALS starts whatever MPI its programs have, Cray's MPICH and Open MPI 5.
bool starts(Mpiexec flavour, std::optional<Mpiexec> wanted) {
  return !wanted || flavour == *wanted || flavour == Mpiexec::pals;
}

// The first one on PATH; where it is to start ranks of `wanted`, the first of that kind.
Result<Found> find_mpiexec(const Environment& environment, std::optional<Mpiexec> wanted) {
  std::string said;
  for (const char* name : kNames) {
    const auto output =
        run_command({.argv = {name, "--version"}, .environment = environment, .limit = Seconds(20)});
    if (!output) continue;
    const auto flavour = is_of_pals(name, environment) ? std::optional(Mpiexec::pals)
                                                       : parse_mpiexec_version(output->out + output->err);
    if (flavour && starts(*flavour, wanted)) return Found{name, *flavour};
    said = fmt::format("; {} says '{}'", name, trim(output->out.substr(0, output->out.find('\n'))));
  }
  return fail(
      {.kind = ErrorKind::unavailable,
       .what = "launch.via: mpiexec finds no mpiexec of MPICH, Intel MPI, Open MPI or PALS on PATH" + said,
       .hint = "load the site's MPI module, or reach the nodes with --via ssh"});
}

// The one that starts the ranks' program as its own; unset where it starts agents only.
std::optional<Mpiexec> mpiexec_of_ranks(const AgentsToLaunch& agents) {
  if (agents.agent_per == AgentPer::node) return std::nullopt;
  switch (agents.mpi) {
    case MpiFlavour::mpich:
      return Mpiexec::hydra;
    case MpiFlavour::openmpi:
      return Mpiexec::open_mpi;
    case MpiFlavour::unknown:
      break;
  }
  return std::nullopt;
}

// How many agents in a row are on each host.
using HostRuns = std::vector<std::pair<std::string, int>>;
HostRuns runs_of_hosts(const AgentsToLaunch& agents) {
  HostRuns runs;
  for (const std::string& host : host_names(agents)) {
    if (runs.empty() || runs.back().first != host) runs.emplace_back(host, 0);
    ++runs.back().second;
  }
  return runs;
}

// "n1:2"
std::vector<std::string> hosts_with_counts(const AgentsToLaunch& agents) {
  std::vector<std::string> out;
  for (const auto& [host, count] : runs_of_hosts(agents)) out.push_back(fmt::format("{}:{}", host, count));
  return out;
}

// PALS fills each host of its list with as many before the next. A copy of the agent on the node would not
// find its own files, so nothing is transferred.
Argv pals_words(const AgentsToLaunch& agents) {
  std::vector<std::string> hosts;
  int each = 1;
  for (const auto& [host, count] : runs_of_hosts(agents)) {
    hosts.push_back(host);
    each = std::max(each, count);
  }
  Argv out{"--hosts",
           join(hosts, ","),
           "-n",
           std::to_string(agents.hosts.size()),
           "--ppn",
           std::to_string(each),
           "--cpu-bind",
           "none",
           "--mem-bind",
           "none",
           "--no-transfer",
           "--no-abort-on-failure"};
  if (agents.agent_per == AgentPer::node) out.insert(out.end(), {"--pmi", "none"});
  out.insert(out.end(), {"--no-label", "--"});
  return out;
}

// With the same number of ranks everywhere but on the last host.
Result<void> check_pals(const AgentsToLaunch& agents) {
  const HostRuns runs = runs_of_hosts(agents);
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (i + 1 < runs.size() ? runs[i].second != runs[0].second : runs[i].second > runs[0].second)
      return fail(
          {.kind = ErrorKind::unavailable,
           .what = fmt::format("mpiexec of PALS starts as many ranks on each node, and {} has {}, {} {}",
                               runs[0].first, runs[0].second, runs[i].first, runs[i].second),
           .hint = "give all nodes the same number of ranks, or use --mpi auto"});
  return {};
}

}  // namespace

std::optional<Mpiexec> parse_mpiexec_version(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (has("PALS")) return Mpiexec::pals;
  if (has("HYDRA") || has("Intel(R) MPI")) return Mpiexec::hydra;
  if (has("Open MPI") || has("OpenRTE") || has("PRRTE")) return Mpiexec::open_mpi;
  return std::nullopt;
}

bool is_pals_path(std::string_view path) {
  return path.find("/pals/") != std::string_view::npos;
}

LaunchCommand mpiexec_command(const AgentsToLaunch& agents, Mpiexec flavour, const Environment& environment) {
  const std::string count = std::to_string(agents.hosts.size());
  const std::vector<std::string> hosts = hosts_with_counts(agents);
  LaunchCommand out{.argv = {}, .environment = environment, .nodes = all_agents(agents)};
  for (const std::string_view name : kPlacement) out.environment.unset(name);
  if (flavour == Mpiexec::hydra) {
    out.argv = {"-hosts", join(hosts, ","), "-n", count, "-bind-to", "none", "-disable-auto-cleanup"};
    out.ignored_lines = {"can't honor --ntasks-per-node"};
  } else if (flavour == Mpiexec::pals) {
    out.argv = pals_words(agents);
  } else {
    out.argv = {"--host", join(hosts, ","), "-np",  count,   "--map-by",
                "slot",   "--bind-to",      "none", "--mca", "orte_abort_on_non_zero_status",
                "0"};
  }
  out.argv = with_agent(std::move(out.argv), agents);
  return out;
}

Result<std::unique_ptr<Launcher>> make_mpiexec_launcher(const LaunchSettings& settings) {
  TRY(find_mpiexec(settings.environment, std::nullopt));
  const auto commands = [environment = settings.environment](
                            const AgentsToLaunch& agents) -> Result<std::vector<LaunchCommand>> {
    const Found found = TRY(find_mpiexec(environment, mpiexec_of_ranks(agents)));
    if (found.flavour == Mpiexec::pals) TRY(check_pals(agents));
    LaunchCommand command = mpiexec_command(agents, found.flavour, environment);
    command.argv.insert(command.argv.begin(), found.program);
    return std::vector<LaunchCommand>{std::move(command)};
  };
  return make_command_launcher({.name = "mpiexec", .commands = commands}, settings);
}

}  // namespace dlrun::launch
