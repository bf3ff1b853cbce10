#include "src/agent/rank_probe.hpp"

#include <algorithm>

#include "src/agent/function_on_stack.hpp"
#include "src/base/json.hpp"

namespace dlrun::agent {
namespace {

int weight(char state) {
  return state == 'T' || state == 't' ? 0 : state == 'D' ? 1 : 2;
}

}  // namespace

RankProbe look_at(const std::vector<ProcessState>& tree) {
  if (tree.empty()) return {};
  const auto telling = std::min_element(
      tree.begin(), tree.end(),
      [](const ProcessState& a, const ProcessState& b) { return weight(a.state) < weight(b.state); });
  RankProbe out;
  out.state = telling->state;
  out.pid = telling->pid;
  out.name = telling->name;
  out.waits = telling->waits;
  return out;
}

RankProbe probe_rank(pid_t pid) {
  const std::vector<ProcessState> tree = states_of_tree(pid);
  RankProbe out = look_at(tree);
  // The rank may be a shell around the program.
  out.finalizing = std::any_of(tree.begin(), tree.end(), [](const ProcessState& process) {
    return is_inside_function(process.pid, "libmpi", "PMPI_Finalize");
  });
  return out;
}

Json to_json(const RankProbe& look) {
  return {{"state", std::string(1, look.state)},
          {"pid", look.pid},
          {"name", look.name},
          {"waits", look.waits},
          {"finalizing", look.finalizing},
          {"in_barrier", look.in_barrier}};
}

RankProbe probe_from_json(const Json& json) {
  constexpr std::string_view where = "look";
  RankProbe out;
  const std::string state = field<std::string>(json, "state", where).value_or("?");
  out.state = state.size() == 1 ? state[0] : '?';
  out.pid = field<pid_t>(json, "pid", where).value_or(0);
  out.name = field<std::string>(json, "name", where).value_or("");
  out.waits = field<std::string>(json, "waits", where).value_or("");
  out.finalizing = field<bool>(json, "finalizing", where).value_or(false);
  out.in_barrier = field<bool>(json, "in_barrier", where).value_or(false);
  return out;
}

}  // namespace dlrun::agent
