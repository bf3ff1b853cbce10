// `flux exec` knows nodes by the ranks of their brokers only, which are looked up in the instance's host
// list.
#include "schedulers/flux/launch.hpp"

#include <algorithm>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/strings.hpp"
#include "src/process/command.hpp"

namespace dlrun {
namespace {

Result<std::vector<HostName>> brokers_of(const Environment& environment) {
  const CommandOutput output = TRY(run_command(
      {.argv = {"flux", "getattr", "hostlist"}, .environment = environment, .limit = Seconds(20)}));
  const std::string text(trim(output.out));
  if (output.status.exit_code == 0 && !text.empty()) return expand_hostlist(text);
  return fail({.kind = ErrorKind::unavailable,
               .what = fmt::format("launch.via: flux asked 'flux getattr hostlist' and got '{}'",
                                   trim(output.out + output.err)),
               .hint = "run it inside a Flux instance (flux batch, flux alloc), or use --via ssh"});
}

}  // namespace

Result<LaunchCommand> flux_command(const AgentsToLaunch& agents, const std::vector<HostName>& brokers,
                                   const Environment& environment) {
  std::vector<std::string> ranks, strangers;
  for (const HostName& host : agents.hosts) {
    const auto found = std::find(brokers.begin(), brokers.end(), host);
    if (found == brokers.end())
      strangers.push_back(host.get());
    else
      ranks.push_back(std::to_string(found - brokers.begin()));
  }
  if (!strangers.empty())
    return fail({.kind = ErrorKind::unavailable,
                 .what = fmt::format("no broker of this Flux instance runs on {}", join(strangers, ", ")),
                 .hint = "flux resource list shows its hosts"});
  return LaunchCommand{.argv = with_agent({"flux", "exec", "--noinput", "-r", join(ranks, ",")}, agents),
                       .environment = environment,
                       .nodes = all_agents(agents)};
}

PendingLauncher begin_flux_launcher(const Environment& environment) {
  return [environment]() -> Result<CommandTraits> {
    return CommandTraits{.name = "flux",
                         .commands = [brokers = TRY(brokers_of(environment)), environment](
                                         const AgentsToLaunch& agents) -> Result<std::vector<LaunchCommand>> {
                           return std::vector<LaunchCommand>{TRY(flux_command(agents, brokers, environment))};
                         }};
  };
}

}  // namespace dlrun
