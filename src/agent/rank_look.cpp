#include "src/agent/rank_look.hpp"

#include <algorithm>

#include "src/base/json.hpp"
#include "src/process/inside_function.hpp"

namespace dlrun::agent {
namespace {

int weight(char state) {
  return state == 'T' || state == 't' ? 0 : state == 'D' ? 1 : 2;
}

}  // namespace

RankLook look_at(const std::vector<ProcessState>& tree) {
  if (tree.empty()) return {};
  const auto telling = std::min_element(
      tree.begin(), tree.end(),
      [](const ProcessState& a, const ProcessState& b) { return weight(a.state) < weight(b.state); });
  RankLook out;
  out.state = telling->state;
  out.pid = telling->pid;
  out.name = telling->name;
  out.waits = telling->waits;
  return out;
}

RankLook look_at_rank(pid_t pid) {
  const std::vector<ProcessState> tree = states_of_tree(pid);
  RankLook out = look_at(tree);
  // The rank may be a shell around the program.
  out.finalizing = std::any_of(tree.begin(), tree.end(), [](const ProcessState& process) {
    return is_inside_function(process.pid, "libmpi", "PMPI_Finalize");
  });
  return out;
}

Json to_json(const RankLook& look) {
  return {{"state", std::string(1, look.state)},
          {"pid", look.pid},
          {"name", look.name},
          {"waits", look.waits},
          {"finalizing", look.finalizing},
          {"in_barrier", look.in_barrier}};
}

RankLook look_from_json(const Json& json) {
  constexpr std::string_view where = "look";
  RankLook out;
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
