// One step over all nodes of the plan, beside whatever else runs in the job. It inherits nothing from the
// job's own task options: a step of one agent a node is not what those were meant for.
#include "src/launch/slurm.hpp"

#include <array>

#include "schedulers/hostlist.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/process/command.hpp"

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

Result<SlurmVersion> version_of_srun(const Environment& environment) {
  const CommandOutput output =
      TRY(run_command({.argv = {"srun", "--version"}, .environment = environment, .limit = Seconds(20)}));
  if (const auto version = parse_slurm_version(output.out)) return *version;
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("srun does not tell its version: '{}'", trim(output.out + output.err)),
            .where = {},
            .hint = "is this Slurm's own srun? --via ssh goes another way"});
}

}  // namespace

std::optional<SlurmVersion> parse_slurm_version(std::string_view text) {
  const std::size_t blank = text.find(' ');
  if (!text.starts_with("slurm") || blank == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> parts = split(trim(text.substr(blank)), '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = parse_integer(parts[0], 0, 1000), minor = parse_integer(parts[1], 0, 1000);
  if (!major || !minor) return std::nullopt;
  return SlurmVersion{static_cast<int>(*major), static_cast<int>(*minor)};
}

EngineCommand srun_command(const plan::Plan& plan, const AgentCommand& agent, const SlurmVersion& version,
                           const Environment& environment) {
  std::vector<HostName> hosts;
  EngineCommand out;
  for (const plan::NodePlan& node : plan.nodes) {
    hosts.push_back(node.host);
    out.nodes.push_back(node.index);
  }
  const std::string count = std::to_string(hosts.size());
  out.argv = {"srun",
              "--nodes=" + count,
              "--ntasks=" + count,
              "--ntasks-per-node=1",
              "--nodelist=" + compress_hostlist(hosts),
              "--mpi=none",       // the agents serve the ranks' MPI
              "--cpu-bind=none",  // and bind them
              "--input=all",      // the token, to every agent
              "--export=ALL",
              "--kill-on-bad-exit=0",
              "--wait=0",  // one agent's end is not the others'
              "--job-name=dlrun"};
  // Since 20.11 a step has its processors for itself unless it says otherwise; older ones do not know the
  // flag.
  if (version.major > 20 || (version.major == 20 && version.minor >= 11)) out.argv.emplace_back("--overlap");
  out.argv.insert(out.argv.end(), agent.argv.begin(), agent.argv.end());
  out.environment = for_srun(environment);
  out.chatter = {"lacks support for cpu binding"};
  return out;
}

Result<std::unique_ptr<Launcher>> make_slurm_launcher(const LaunchSettings& settings) {
  if (!settings.environment.find("SLURM_JOB_ID"))
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = "launch.via: slurm needs a Slurm job to stand in, and SLURM_JOB_ID is not set",
                      .where = {},
                      .hint = "run it by sbatch or salloc, or reach the nodes with --via ssh"});
  const SlurmVersion version = TRY(version_of_srun(settings.environment));
  return make_engine_launcher("slurm", [version, environment = settings.environment](
                                           const plan::Plan& plan, const AgentCommand& agent) {
    std::vector<EngineCommand> out;
    out.push_back(srun_command(plan, agent, version, environment));
    return Result<std::vector<EngineCommand>>(std::move(out));
  });
}

}  // namespace dlrun::launch
