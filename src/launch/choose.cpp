// Which way leads to a plan's nodes: the one that the job names, else this machine where the plan has no
// other, else the way of the allocation's scheduler. A plan for machines that no way leads to is refused by
// name rather than run here.
#include <array>

#include <unistd.h>

#include "src/base/strings.hpp"
#include "src/launch/launcher.hpp"

namespace dlrun::launch {
namespace {

using Maker = Result<std::unique_ptr<Launcher>> (*)(const LaunchSettings&);

struct Way {
  std::string_view name;
  std::string_view scheduler;  // whose allocations it is for, where it is for one's only
  Maker make;
};

// In the order in which they are asked; the last one is for whatever has no way of its own.
constexpr std::array<Way, 3> kWays{{{"local", "local", make_local_launcher},
                                    {"slurm", "slurm", make_slurm_launcher},
                                    {"ssh", "", make_ssh_launcher}}};

std::string this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// "c1" and "c1.cluster" may be one machine's two names; two names with different domains are not.
bool same_machine(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".") || a == "localhost";
}

std::vector<std::string> others_of(const plan::Plan& plan) {
  const std::string here = this_host();
  std::vector<std::string> out;
  for (const plan::NodePlan& node : plan.nodes)
    if (!same_machine(node.host.get(), here)) out.push_back(node.host.get());
  return out;
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
  if (settings.via != "auto") return named(settings);
  const std::vector<std::string> others = others_of(plan);
  if (others.empty() && plan.nodes.size() == 1) return make_local_launcher(settings);
  for (const Way& way : kWays)
    if (way.name != "local" && (way.scheduler.empty() || way.scheduler == settings.scheduler))
      return way.make(settings);
  return fail(Error{
      .kind = ErrorKind::unavailable,
      .what =
          fmt::format("this version starts ranks on its own machine ({}) only, and the plan has {} node{}",
                      this_host(), plan.nodes.size(), plan.nodes.size() == 1 ? "" : "s"),
      .hint = "dlrun plan --scripts DIR writes the nodes' scripts, which can be started by hand",
      .also = others});
}

}  // namespace dlrun::launch
