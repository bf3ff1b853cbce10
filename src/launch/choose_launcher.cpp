// Which way leads to a plan's nodes: the one that the job names, else this machine where the plan has no
// other, else the way of the allocation's scheduler, else ssh. A plan for other machines is never run on this
// one.
#include <array>

#include "src/base/host_name.hpp"
#include "src/base/strings.hpp"
#include "src/launch/launcher.hpp"

namespace dlrun::launch {
namespace {

using Maker = Result<std::unique_ptr<Launcher>> (*)(const LaunchSettings&);

struct Way {
  std::string_view name;
  std::string_view scheduler;  // whose allocations it is for; empty: taken by name only
  Maker make;
};

constexpr std::array<Way, 9> kWays{{{"local", "local", make_local_launcher},
                                    {"slurm", "slurm", make_slurm_launcher},
                                    {"pbs", "pbs", make_pbs_launcher},
                                    {"pbs", "torque", make_pbs_launcher},
                                    {"sge", "gridengine", make_sge_launcher},
                                    {"lsf", "lsf", make_lsf_launcher},
                                    {"flux", "flux", make_flux_launcher},
                                    {"mpiexec", "", make_mpiexec_launcher},
                                    {"ssh", "", make_ssh_launcher}}};

// "c1" and "c1.cluster" may be one machine's two names; two names with different domains are not.
bool same_machine(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".") || a == "localhost";
}

std::vector<std::string> others_of(const plan::Plan& plan) {
  const std::string here = host_name();
  std::vector<std::string> out;
  for (const plan::NodePlan& node : plan.nodes)
    if (!same_machine(node.host.get(), here)) out.push_back(node.host.get());
  return out;
}

// launch.mpi: native: the agents are to be ranks of an MPI's launcher.
Result<std::unique_ptr<Launcher>> starter_of_mpi_ranks(const LaunchSettings& settings) {
  if (settings.via == "slurm" || (settings.via == "auto" && settings.scheduler == "slurm"))
    return make_slurm_launcher(settings);
  if (settings.via == "mpiexec" || settings.via == "auto") return make_mpiexec_launcher(settings);
  return fail(
      Error{.kind = ErrorKind::usage,
            .what = fmt::format("launch.mpi: native needs a way that starts MPI ranks, and launch.via is {}",
                                settings.via),
            .where = {},
            .hint = "--via slurm or --via mpiexec; or --mpi auto, which needs no such way"});
}

Result<std::unique_ptr<Launcher>> named(const LaunchSettings& settings) {
  std::vector<std::string> names{"auto"};
  for (const Way& way : kWays) {
    if (way.name == settings.via) return way.make(settings);
    names.emplace_back(way.name);
  }
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("launch.via: '{}' is no way onto a node", settings.via),
                    .where = {},
                    .hint = did_you_mean(settings.via, names)});
}

}  // namespace

Result<std::unique_ptr<Launcher>> choose_launcher(const plan::Plan& plan, const LaunchSettings& settings) {
  if (plan.mpi == plan::MpiProtocol::native) return starter_of_mpi_ranks(settings);
  if (settings.via != "auto") return named(settings);
  const std::vector<std::string> others = others_of(plan);
  if (others.empty() && plan.nodes.size() == 1) return make_local_launcher(settings);
  for (const Way& way : kWays)
    if (way.name != "local" && way.scheduler == settings.scheduler) return way.make(settings);
  return make_ssh_launcher(settings);
}

}  // namespace dlrun::launch
