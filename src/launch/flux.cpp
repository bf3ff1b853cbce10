// The flux way: `flux exec` starts an agent beside the brokers of the Flux instance that we stand in. It
// knows nodes by their brokers' ranks only, which are looked up in the instance's host list.
#include <algorithm>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/strings.hpp"
#include "src/launch/command_traits.hpp"
#include "src/process/command.hpp"

namespace dlrun::launch {
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

Result<EngineCommand> flux_command(const plan::Plan& plan, const AgentCommand& agent,
                                   const std::vector<HostName>& brokers, const Environment& environment) {
  std::vector<std::string> ranks, strangers;
  for (const plan::NodePlan& node : plan.nodes) {
    const auto found = std::find(brokers.begin(), brokers.end(), node.host);
    if (found == brokers.end())
      strangers.push_back(node.host.get());
    else
      ranks.push_back(std::to_string(found - brokers.begin()));
  }
  if (!strangers.empty())
    return fail({.kind = ErrorKind::unavailable,
                 .what = fmt::format("no broker of this Flux instance runs on {}", join(strangers, ", ")),
                 .hint = "flux resource list shows its hosts"});
  return EngineCommand{.argv = with_agent({"flux", "exec", "--noinput", "-r", join(ranks, ",")}, agent),
                       .environment = environment,
                       .nodes = all_nodes(plan)};
}

Result<std::unique_ptr<Launcher>> make_flux_launcher(const LaunchSettings& settings) {
  std::vector<HostName> brokers = TRY(brokers_of(settings.environment));
  return make_engine_launcher(
      {.name = "flux"}, settings,
      [brokers = std::move(brokers), environment = settings.environment](
          const plan::Plan& plan, const AgentCommand& agent) -> Result<std::vector<EngineCommand>> {
        return std::vector<EngineCommand>{TRY(flux_command(plan, agent, brokers, environment))};
      });
}

}  // namespace dlrun::launch
