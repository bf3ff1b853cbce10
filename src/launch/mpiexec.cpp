// mpiexec starts the agents, one per node. It finds the site's way onto the nodes by itself (ssh, srun, pbs,
// ...). It must not count slots, bind, or end the others with one, so each of these is switched off.
#include "src/launch/mpiexec.hpp"

#include <array>

#include "src/base/strings.hpp"
#include "src/launch/command_launcher.hpp"
#include "src/process/command.hpp"

namespace dlrun::launch {
namespace {

// Options that a user or a site set for MPI programs, which would move or count the agents.
constexpr std::array<std::string_view, 12> kPlacement{"HYDRA_HOST_FILE",
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
                                                      "PRTE_MCA_rmaps_default_mapping_policy"};

constexpr std::array<const char*, 4> kNames{"mpiexec", "mpirun", "mpiexec.hydra", "mpirun.openmpi"};

struct Found {
  std::string program;
  Mpiexec flavour;
};

// The first one on PATH; where it is to start ranks of `wanted`, the first of that kind.
Result<Found> find_mpiexec(const Environment& environment, std::optional<Mpiexec> wanted) {
  std::string said;
  for (const char* name : kNames) {
    const auto output =
        run_command({.argv = {name, "--version"}, .environment = environment, .limit = Seconds(20)});
    if (!output) continue;
    const auto flavour = parse_mpiexec_version(output->out + output->err);
    if (flavour && (!wanted || flavour == wanted)) return Found{name, *flavour};
    said = fmt::format("; {} says '{}'", name, trim(output->out.substr(0, output->out.find('\n'))));
  }
  return fail({.kind = ErrorKind::unavailable,
               .what = "launch.via: mpiexec finds no mpiexec of MPICH, Intel MPI or Open MPI on PATH" + said,
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

// "n1:2": that many agents in a row there.
std::vector<std::string> hosts_with_counts(const AgentsToLaunch& agents) {
  std::vector<std::pair<std::string, int>> runs;
  for (const std::string& host : host_names(agents)) {
    if (runs.empty() || runs.back().first != host) runs.emplace_back(host, 0);
    ++runs.back().second;
  }
  std::vector<std::string> out;
  for (const auto& [host, count] : runs) out.push_back(fmt::format("{}:{}", host, count));
  return out;
}

}  // namespace

std::optional<Mpiexec> parse_mpiexec_version(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (has("HYDRA") || has("Intel(R) MPI")) return Mpiexec::hydra;
  if (has("Open MPI") || has("OpenRTE") || has("PRRTE")) return Mpiexec::open_mpi;
  return std::nullopt;
}

LaunchCommand mpiexec_command(const AgentsToLaunch& agents, Mpiexec flavour, const Environment& environment) {
  const std::string count = std::to_string(agents.hosts.size());
  const std::vector<std::string> hosts = hosts_with_counts(agents);
  LaunchCommand out{.argv = {}, .environment = environment, .nodes = all_agents(agents)};
  for (const std::string_view name : kPlacement) out.environment.unset(name);
  if (flavour == Mpiexec::hydra) {
    out.argv = {"-hosts", join(hosts, ","), "-n", count, "-bind-to", "none", "-disable-auto-cleanup"};
    out.ignored_lines = {"can't honor --ntasks-per-node"};
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
    LaunchCommand command = mpiexec_command(agents, found.flavour, environment);
    command.argv.insert(command.argv.begin(), found.program);
    return std::vector<LaunchCommand>{std::move(command)};
  };
  return make_command_launcher({.name = "mpiexec", .commands = commands}, settings);
}

}  // namespace dlrun::launch
