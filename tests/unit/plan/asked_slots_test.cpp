// Slots that a user asked for are ranks; what a scheduler merely counts is not.
#include "src/plan/asked_slots.hpp"

#include <doctest/doctest.h>

#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

Allocation with_slots(const std::vector<std::optional<int>>& asked) {
  Allocation out;
  out.scheduler = "pbs";
  for (std::size_t i = 0; i < asked.size(); ++i) {
    AllocatedNode node{.host = HostName(fmt::format("x{}", i + 1)),
                       .slots = 8,
                       .cpus = 8,
                       .gpus = std::vector<std::string>{"0", "1", "2", "3"}};
    node.asked_slots = asked[i];
    out.nodes.push_back(std::move(node));
  }
  return out;
}

std::vector<int> ranks_per_node(const std::string& text, const Allocation& allocation,
                                plan::Adapter framework = plain()) {
  const plan::Plan plan = plan::make_plan(input(text, allocation, std::move(framework))).value();
  std::vector<int> out(allocation.nodes.size(), 0);
  for (const plan::RankPlan& rank : plan.ranks) ++out[static_cast<std::size_t>(rank.node.get())];
  return out;
}

constexpr const char* kNoWord = "command: [x]\n";
using Counts = std::vector<int>;

}  // namespace

TEST_CASE("asked slots: they give tasks-per-node, node by node") {
  CHECK(ranks_per_node(kNoWord, with_slots({1, 4, 4})) == Counts{1, 4, 4});
  CHECK(ranks_per_node(kNoWord, with_slots({4, 4})) == Counts{4, 4});
  CHECK(ranks_per_node("command: [x]\nresources: {nodes: 1}\n", with_slots({2, 4})) == Counts{2, 0});
}

TEST_CASE("asked slots: those of a job with roles are of all roles together, as submit asks for them") {
  const auto roles = adapter(
      "name: r\nsummary: s\nroles:\n  worker: {default: tasks-per-node}\n  ps: {count: 1, gpus: 0}\n");
  CHECK(ranks_per_node(kNoWord, with_slots({2, 2}), roles) == Counts{2, 1});
}

TEST_CASE("asked slots: one per node, and slots that were not asked for, do not count") {
  CHECK(ranks_per_node(kNoWord, with_slots({{}, {}})) == Counts{1, 1});
  CHECK(ranks_per_node("command: [x]\nresources: {tasks-per-node: 3}\n", with_slots({1, 1})) == Counts{3, 3});
}

TEST_CASE("asked slots: the job's own word wins: tasks-per-node, GPUs, a role's number") {
  CHECK(ranks_per_node("command: [x]\nresources: {tasks-per-node: 2}\n", with_slots({4, 4})) == Counts{2, 2});
  CHECK(ranks_per_node("command: [x]\nresources: {gpus-per-node: 4}\n", with_slots({2, 2})) == Counts{4, 4});
  const auto roles = adapter("name: r\nsummary: s\nroles:\n  worker: {default: tasks-per-node}\n");
  CHECK(ranks_per_node("command: [x]\nroles: {worker: {per-node: 3}}\n", with_slots({4, 4}), roles) ==
        Counts{3, 3});
}

TEST_CASE("asked slots: more tasks than slots is an error that names the nodes") {
  const auto refused =
      plan::make_plan(input("command: [x]\nresources: {tasks-per-node: 4}\n", with_slots({1, 4, 4})));
  CHECK(refused.error().kind == ErrorKind::allocation);
  CHECK(error_of(refused) ==
        "job.yaml:2:29: the job asks for 4 tasks per node, but fewer slots were requested on 1 of 3 nodes\n"
        "  x1 has 1 slot\n"
        "  hint: remove tasks-per-node to get one rank per slot, or request more slots");
}

TEST_CASE("asked slots: a total that Slurm has divided contradicts a job only by its sum") {
  Allocation slurm = with_slots({3, 1});  // sbatch --nodes=2 --ntasks=4
  slurm.scheduler = "slurm";
  CHECK(ranks_per_node("command: [x]\nresources: {tasks-per-node: 2}\n", slurm) == Counts{2, 2});
  const auto refused = plan::make_plan(input("command: [x]\nresources: {tasks-per-node: 3}\n", slurm));
  CHECK(refused.error().kind == ErrorKind::allocation);
}
