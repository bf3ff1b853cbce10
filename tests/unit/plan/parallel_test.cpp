// The numbering against the definition in Megatron-LM, spelled out: two grids, one without experts and one
// without context, whose ranks are counted with the first name of the order fastest.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "src/base/strings.hpp"
#include "src/plan/parallel_facts.hpp"
#include "src/plan/valid_names.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using plan::GroupKind;
using plan::GroupOrder;

namespace {

using Groups = std::vector<std::vector<int>>;
using Sizes = std::map<GroupKind, int>;

// Counts through the grid like a clock whose first hand is the fastest; ranks that differ in `along` alone
// are a group.
Groups counted(const GroupOrder& order, const Sizes& sizes, GroupKind along) {
  std::map<std::vector<int>, std::vector<int>> by_others;
  std::vector<int> hands(order.size(), 0);
  int world = 1;
  for (const GroupKind kind : order) world *= sizes.at(kind);
  for (int rank = 0; rank < world; ++rank) {
    std::vector<int> others = hands;
    others[static_cast<std::size_t>(std::find(order.begin(), order.end(), along) - order.begin())] = 0;
    by_others[others].push_back(rank);
    for (std::size_t hand = 0; hand < hands.size() && ++hands[hand] == sizes.at(order[hand]); ++hand)
      hands[hand] = 0;
  }
  Groups out;
  for (const auto& [others, ranks] : by_others) out.push_back(ranks);
  std::sort(out.begin(), out.end());
  return out;
}

// Rank by rank from group_ranks(), as a program would find them.
Groups found(const plan::Parallel& parallel, GroupKind along) {
  Groups out = plan::groups(parallel, along);
  bool as_told = true;
  for (const auto& group : out)
    for (std::size_t i = 0; i < group.size(); ++i)
      as_told = as_told && plan::group_ranks(parallel, group[i])[along] == static_cast<int>(i);
  REQUIRE(as_told);
  std::sort(out.begin(), out.end());
  return out;
}

void compare_with_megatron(const plan::ParallelSpec& spec, int world, int& accepted) {
  const plan::Parallel ours = plan::parallel_of(spec, world);
  Sizes model, experts;
  for (const GroupKind kind : plan::kMegatronOrder) model[kind] = experts[kind] = ours.sizes[kind];
  model[GroupKind::expert] = experts[GroupKind::context] = 1;
  experts[GroupKind::data] = ours.sizes[GroupKind::expert_data];
  REQUIRE(ours.world_size() == world);
  for (const GroupKind kind : {GroupKind::tensor, GroupKind::context, GroupKind::data, GroupKind::pipeline})
    REQUIRE(found(ours, kind) == counted(spec.order, model, kind));
  if (spec.expert == 1) return;
  const auto same = [&](GroupKind kind) {
    return counted(spec.order, model, kind) == counted(spec.order, experts, kind);
  };
  // Megatron-LM itself demands the first; the second makes one DLRUN_TENSOR_RANK true for all layers.
  REQUIRE(plan::experts_fit(ours) == (same(GroupKind::pipeline) && same(GroupKind::tensor)));
  if (!plan::experts_fit(ours)) return;
  ++accepted;
  REQUIRE(found(ours, GroupKind::expert) == counted(spec.order, experts, GroupKind::expert));
  REQUIRE(found(ours, GroupKind::expert_data) == counted(spec.order, experts, GroupKind::data));
}

plan::PlanInput on_nodes(const std::string& job_text, std::vector<int> ranks_of_nodes,
                         plan::Adapter framework = plain()) {
  Allocation allocation;
  allocation.scheduler = "slurm";
  for (std::size_t i = 0; i < ranks_of_nodes.size(); ++i) {
    allocation.nodes.push_back(node(fmt::format("n{}", i + 1), 64));
    allocation.nodes.back().slots = ranks_of_nodes[i];
    allocation.nodes.back().asked_slots = ranks_of_nodes[i];
  }
  return input("command: [x]\n" + job_text, std::move(allocation), std::move(framework));
}

Result<plan::Plan> planned(const std::string& job_text, std::vector<int> ranks_of_nodes,
                           plan::Adapter framework = plain()) {
  return plan::make_plan(on_nodes(job_text, std::move(ranks_of_nodes), std::move(framework)));
}

}  // namespace

TEST_CASE("groups: Megatron-LM's, in every order and for many sizes") {
  int accepted = 0;
  GroupOrder order = plan::kMegatronOrder;
  std::sort(order.begin(), order.end());
  do {
    for (const auto& [tensor, pipeline, context, expert] :
         {std::array{2, 2, 2, 2}, {2, 2, 2, 1}, {2, 2, 1, 4}, {1, 2, 2, 4}, {2, 1, 2, 2}})
      compare_with_megatron({.tensor = tensor,
                             .context = context,
                             .expert = expert,
                             .pipeline = pipeline,
                             .order = order,
                             .within_node = {}},
                            16, accepted);
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(accepted > 50);
}

TEST_CASE("groups: the example of Megatron-LM's documentation") {
  const plan::Parallel parallel = plan::parallel_of({.tensor = 2, .pipeline = 4}, 16);
  CHECK(plan::groups(parallel, GroupKind::data) ==
        Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(plan::groups(parallel, GroupKind::pipeline) ==
        Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
  CHECK(plan::groups(parallel, GroupKind::tensor).at(7) == std::vector{14, 15});
}

TEST_CASE("groups: an order may leave out what has one rank; without experts all copies share them") {
  const plan::Parallel parallel =
      plan::parallel_of({.tensor = 2, .order = {GroupKind::tensor, GroupKind::data, GroupKind::pipeline}}, 8);
  CHECK(parallel.order.size() == 5);
  CHECK(plan::groups(parallel, GroupKind::expert_data) == plan::groups(parallel, GroupKind::data));
  CHECK(plan::groups(parallel, GroupKind::expert).size() == 8);
  const plan::Parallel copies = plan::parallel_of({.context = 2}, 8);
  CHECK(plan::groups(copies, GroupKind::expert_data) == Groups{{0, 1, 2, 3, 4, 5, 6, 7}});
}

TEST_CASE("parallel: what a job file says, and where it is wrong") {
  const auto spec =
      job("command: [x]\nparallel: {tensor: 2, order: [tensor, pipeline, data], within-node: data}\n");
  REQUIRE_MESSAGE(spec.has_value(), error_of(spec));
  CHECK(spec->parallel ==
        plan::ParallelSpec{.tensor = 2,
                           .order = {GroupKind::tensor, GroupKind::pipeline, GroupKind::data},
                           .within_node = {GroupKind::data}});
  CHECK_FALSE(job("command: [x]\n")->parallel.has_value());
  CHECK(job("command: [x]\nparallel: {tensor: 2, sequence: on}\n")->parallel ==
        plan::ParallelSpec{.tensor = 2, .sequence = plan::SequenceParallel::on});
  CHECK(job("command: [x]\nparallel: {within-node: []}\n")->parallel->within_node.empty());
  const auto refused = [](const std::string& section) {
    return error_of(job("command: [x]\nparallel: " + section + "\n"));
  };
  CHECK(refused("{tensor: 0}") == "job.yaml:2:20: parallel.tensor: 0 is out of range [1, 100000]");
  CHECK(refused("{order: [tensor, data, tensor]}").find("2:34: parallel.order: 'tensor' is there twice") !=
        std::string::npos);
  CHECK(refused("{order: [tensor, expert-data]}").find("'expert-data' is not known") != std::string::npos);
  CHECK(refused("{expert: 2, order: [tensor, data]}")
            .find("parallel.order has no 'expert', and parallel.expert is 2") != std::string::npos);
  CHECK(refused("{tensor: 1000, pipeline: 1000}").find("is more than 100000 ranks") != std::string::npos);
  CHECK(refused("{sequence: yes}").find("2:22: parallel.sequence: 'yes' is not known") != std::string::npos);
  CHECK(refused("{tp: 2}").find("did you mean 'tensor'?") != std::string::npos);
}

TEST_CASE("parallel: what does not fit the ranks or the nodes") {
  CHECK(error_of(planned("parallel: {tensor: 2, pipeline: 3}\n", {4, 4})) ==
        "job.yaml:2:11: 8 ranks cannot be divided into groups of 6 (tensor 2 x pipeline 3)\n"
        "  hint: use 6 or 12 ranks, or other sizes");
  const auto small = planned("parallel: {context: 16}\n", {4, 4});
  CHECK(small.error().kind == ErrorKind::allocation);
  CHECK(small.error().what == "parallel needs at least 16 ranks (context 16), and the job has 8");
  // Each node must have whole tensor groups, not only their sum.
  CHECK(error_of(planned("parallel: {tensor: 2}\n", {3, 5}))
            .find("2:20: a tensor group of 2 ranks is not on one node: ranks 2 on n1; 3 on n2") !=
        std::string::npos);
  CHECK(planned("parallel: {tensor: 2, within-node: []}\n", {3, 5}).has_value());
  CHECK(planned("parallel: {tensor: 2}\n", {2, 6}).has_value());
  CHECK(error_of(planned("parallel: {tensor: 2, within-node: [tensor, data]}\n", {4, 4}))
            .find("2:36: a data group of 4 ranks is not on one node: ranks 0, 2 on n1; 4, 6 on n2") !=
        std::string::npos);
  CHECK(planned("parallel: {tensor: 2, order: [data, tensor]}\n", {4, 4})
            .error()
            .what.find("ranks 0 on n1; 4 on n2") != std::string::npos);
}

TEST_CASE("parallel: an adapter says which groups and orders its framework has") {
  const auto own = adapter(
      "name: own\nsummary: s\nparallel: {groups: [tensor, expert], orders: [[tensor, expert, data]]}\n"
      "suffix: [{value: '--tp={{parallel.tensor}}', if: parallel.tensor}, "
      "{value: '--ep={{parallel.expert}}', if: parallel.expert}]\n");
  CHECK(planned("", {4}, own)->ranks[0].argv == Argv{"x"});
  CHECK(planned("parallel: {tensor: 2}\n", {4}, own)->ranks[0].argv == Argv{"x", "--tp=2"});
  CHECK(planned("parallel: {expert: 2}\n", {4}, own)->ranks[0].argv == Argv{"x", "--tp=1", "--ep=2"});
  CHECK(planned("parallel: {pipeline: 2}\n", {4}, own).error().what ==
        "parallel.pipeline is 2, which framework own does not support");
  CHECK(planned("parallel: {tensor: 2, order: [data, tensor]}\n", {4}, own).error().what ==
        "framework own does not number its ranks in the order data, tensor");
  CHECK(planned("parallel: {tensor: 2, sequence: on}\n", {4}, own).error().what ==
        "parallel.sequence is on, which framework own does not support");
  const auto slicing = adapter(
      "name: own\nsummary: s\nparallel: {groups: [tensor], sequence: on}\n"
      "suffix: [{value: --sp, if: parallel.sequence}]\n");
  CHECK(planned("parallel: {tensor: 2}\n", {4}, slicing)->ranks[0].argv == Argv{"x"});
  const auto sliced = planned("parallel: {tensor: 2, sequence: on}\n", {4}, slicing);
  CHECK(sliced->ranks[0].argv == Argv{"x", "--sp"});
  CHECK(sliced->environment.at("DLRUN_SEQUENCE_PARALLEL") == "on");
  CHECK(plan::plan_from_json(plan::to_json(*sliced))->parallel == sliced->parallel);
  // With one data rank nothing is numbered otherwise.
  CHECK(planned("parallel: {tensor: 4, order: [data, tensor]}\n", {4}, own).has_value());
  CHECK(error_of(plan::parse_adapter("name: a\nsummary: s\nparallel: {groups: [data]}\n", "a.yaml"))
            .find("a.yaml:3:21: parallel.groups: 'data' is not known") != std::string::npos);
}

TEST_CASE("parallel: each rank's place in its groups, in the plan, its variables and its facts") {
  const auto shows = adapter(
      "name: shows\nsummary: s\nenv: {T: '{{rank.tensor-index}} {{rank.data-index}} "
      "{{parallel.mesh-shape}} {{parallel.mesh-names}}'}\nfiles: {groups.json: '{{parallel.groups}}'}\n");
  const auto plan = planned("parallel: {tensor: 2, pipeline: 2}\n", {4, 4}, shows);
  REQUIRE_MESSAGE(plan.has_value(), error_of(plan));
  for (const plan::RankPlan& rank : plan->ranks) {
    REQUIRE(rank.group_ranks.has_value());
    const int number = rank.rank.get();
    CHECK(rank.environment.at("DLRUN_TENSOR_RANK") == std::to_string(number % 2));
    CHECK(rank.environment.at("DLRUN_DATA_RANK") == std::to_string(number / 2 % 2));
    CHECK(rank.environment.at("DLRUN_PIPELINE_RANK") == std::to_string(number / 4));
    CHECK(rank.environment.at("T") ==
          fmt::format("{} {} 2,2,1,2 pipeline,data,context,tensor", number % 2, number / 2 % 2));
    for (const auto& [name, value] : plan::parallel_variables(*rank.group_ranks))
      CHECK(plan::is_reserved_variable(name));
  }
  for (const auto& [name, value] : plan::parallel_variables(*plan->parallel)) {
    CHECK(plan->environment.at(name) == value);
    CHECK(plan::is_reserved_variable(name));
  }
  const Json lists = parse_json(plan->files.at("groups.json"), "groups.json").value();
  CHECK(lists.at("pipeline") == Json{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(lists.size() == plan::kGroupKindCount);
}

TEST_CASE("parallel: processes that a framework starts itself count, and services do not") {
  const auto torchrun = adapter("name: t\nsummary: s\nprocess: per-node\n");
  const auto plan = planned("parallel: {tensor: 4}\n", {4, 4}, torchrun);
  REQUIRE_MESSAGE(plan.has_value(), error_of(plan));
  CHECK(plan->parallel->world_size() == 8);
  CHECK(plan->environment.at("DLRUN_DATA_SIZE") == "2");
  CHECK_FALSE(plan->ranks[0].group_ranks.has_value());
  CHECK(error_of(planned("parallel: {tensor: 8}\n", {4, 4}, torchrun)).find("is not on one node") !=
        std::string::npos);
  const auto served = adapter(
      "name: s\nsummary: s\nroles: {store: {count: 1, gpus: 0, service: true, light: true, command: [y]}, "
      "worker: {default: tasks-per-node}}\n");
  const auto roles = planned("resources: {tasks-per-node: 4}\nparallel: {tensor: 2}\n", {5}, served);
  REQUIRE_MESSAGE(roles.has_value(), error_of(roles));
  CHECK(roles->parallel->world_size() == 4);
  CHECK_FALSE(roles->ranks[0].group_ranks.has_value());
  CHECK(roles->ranks[2].environment.at("DLRUN_TENSOR_RANK") == "1");
}
