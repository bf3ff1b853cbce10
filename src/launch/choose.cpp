// Which way leads to a plan's nodes. So far there is one, this machine itself; a plan for others is refused
// by name rather than run here.
#include <array>

#include <unistd.h>

#include "src/launch/launcher.hpp"

namespace dlrun::launch {
namespace {

std::string this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// "c1" and "c1.cluster" may be one machine's two names; two names with different domains are not.
bool same_machine(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".") || a == "localhost";
}

}  // namespace

Result<std::unique_ptr<Launcher>> choose_launcher(const plan::Plan& plan, const Environment& environment) {
  const std::string here = this_host();
  std::vector<std::string> elsewhere;
  for (const plan::NodePlan& node : plan.nodes)
    if (!same_machine(node.host.get(), here)) elsewhere.push_back(node.host.get());
  if (elsewhere.empty() && plan.nodes.size() == 1) return make_local_launcher(environment);
  return fail(Error{
      .kind = ErrorKind::unavailable,
      .what =
          fmt::format("this version starts ranks on its own machine ({}) only, and the plan has {} node{}",
                      here, plan.nodes.size(), plan.nodes.size() == 1 ? "" : "s"),
      .hint = "dlrun plan --scripts DIR writes the nodes' scripts, which can be started by hand",
      .also = elsewhere});
}

}  // namespace dlrun::launch
