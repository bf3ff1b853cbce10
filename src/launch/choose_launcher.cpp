// Which launcher a plan's nodes are reached by: the one that the job names, else this machine where the plan
// has no other (by its names, its addresses or those of loopback), else the launcher of the allocation's
// scheduler, else ssh. A plan for other machines is never run on this one.
#include <algorithm>
#include <array>

#include "schedulers/node_identity.hpp"
#include "schedulers/scheduler.hpp"
#include "src/base/host_name.hpp"
#include "src/base/strings.hpp"
#include "src/launch/command_launcher.hpp"

namespace dlrun::launch {
namespace {

struct OwnLauncher {
  std::string_view name;
  Result<std::unique_ptr<Launcher>> (*make)(const LaunchSettings&);
};
constexpr std::array<OwnLauncher, 3> kOwnLaunchers{
    {{"local", make_local_launcher}, {"ssh", make_ssh_launcher}, {"mpiexec", make_mpiexec_launcher}}};

// "c1" and "c1.cluster" may be one machine's two names; two names with different domains are not.
bool same_machine(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".");
}

bool is_this_machine_alone(const plan::Plan& plan) {
  if (plan.nodes.size() != 1) return false;
  const std::string& host = plan.nodes.front().host.get();
  return same_machine(host, host_name()) || is_machine(host, this_machine());
}

bool has_launcher(const Scheduler* scheduler) {
  return scheduler != nullptr && scheduler->launcher != nullptr;
}

bool starts_ranks(const Scheduler& scheduler) {
  const auto& starts = scheduler.launcher_starts;
  return std::find(starts.begin(), starts.end(), AgentPer::rank) != starts.end();
}

Result<std::unique_ptr<Launcher>> launcher_of(const Scheduler& scheduler, const LaunchSettings& settings) {
  const bool begun = settings.begun && settings.begun->scheduler == scheduler.name;
  const PendingLauncher pending = begun ? settings.begun->pending : scheduler.launcher(settings.environment);
  return make_command_launcher(TRY(pending()), settings);
}

// launch.mpi: native: the agents are to be ranks of an MPI's launcher.
Result<std::unique_ptr<Launcher>> launcher_of_mpi_ranks(const LaunchSettings& settings) {
  const bool is_auto = settings.via == "auto";
  const Scheduler* scheduler = find_scheduler(is_auto ? settings.scheduler : settings.via);
  if (has_launcher(scheduler) && starts_ranks(*scheduler)) return launcher_of(*scheduler, settings);
  if (settings.via == "mpiexec" || is_auto) return make_mpiexec_launcher(settings);
  return fail(Error{
      .kind = ErrorKind::usage,
      .what = fmt::format("launch.mpi: native needs a launcher that starts MPI ranks, and launch.via is {}",
                          settings.via),
      .where = {},
      .hint = "--via slurm or --via mpiexec; or --mpi auto, which works with every launcher"});
}

Result<std::unique_ptr<Launcher>> named_launcher(const LaunchSettings& settings) {
  for (const OwnLauncher& own : kOwnLaunchers)
    if (own.name == settings.via) return own.make(settings);
  const Scheduler* scheduler = find_scheduler(settings.via);
  if (has_launcher(scheduler)) return launcher_of(*scheduler, settings);
  std::vector<std::string> names = launcher_names();
  names.insert(names.begin(), "auto");
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("unknown launcher '{}' in launch.via", settings.via),
                    .where = {},
                    .hint = did_you_mean(settings.via, names)});
}

}  // namespace

std::optional<BegunLauncher> begin_launcher(const Environment& environment) {
  const SystemCommands commands;
  const SystemClock clock;
  const DiscoveryContext context{environment, commands, clock, {}};
  for (const Scheduler& scheduler : all_schedulers())
    if (has_launcher(&scheduler) && !scheduler.detect(context).empty())
      return BegunLauncher{std::string(scheduler.name), scheduler.launcher(environment)};
  return std::nullopt;
}

Result<std::unique_ptr<Launcher>> choose_launcher(const plan::Plan& plan, const LaunchSettings& settings) {
  if (plan.mpi == plan::MpiProtocol::native) return launcher_of_mpi_ranks(settings);
  if (settings.via != "auto") return named_launcher(settings);
  if (is_this_machine_alone(plan)) return make_local_launcher(settings);
  const Scheduler* scheduler = find_scheduler(settings.scheduler);
  return has_launcher(scheduler) ? launcher_of(*scheduler, settings) : make_ssh_launcher(settings);
}

}  // namespace dlrun::launch
