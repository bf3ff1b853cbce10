#include "src/agent/rank_probe.hpp"

#include <algorithm>

#include "src/agent/function_on_stack.hpp"

namespace dlrun::agent {
namespace {

int weight(char state) {
  return state == 'T' || state == 't' ? 0 : state == 'D' ? 1 : 2;
}

}  // namespace

RankProbe probe_of(const std::vector<ProcessState>& tree) {
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
  RankProbe out = probe_of(tree);
  // The rank may be a shell around the program.
  out.finalizing = std::any_of(tree.begin(), tree.end(), [](const ProcessState& process) {
    return is_inside_function(process.pid, "libmpi", "PMPI_Finalize");
  });
  return out;
}

}  // namespace dlrun::agent
