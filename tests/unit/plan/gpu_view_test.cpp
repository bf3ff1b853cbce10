// What ranks see of their node's GPUs, for every framework that comes with dlrun: an unchanged script that
// takes device LOCAL_RANK gets the rank's own GPU.
#include "src/plan/gpu_view.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "src/base/strings.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using plan::GpuView;
using plan::RankPlan;
using Names = std::vector<std::string>;
using Changes = plan::EnvironmentChanges;

namespace {

RankPlan rank_on(int node, int local, std::optional<Names> gpus) {
  RankPlan out;
  out.node = NodeIndex(node);
  out.local_rank = LocalRank(local);
  out.gpus = std::move(gpus);
  return out;
}

Allocation two_nodes() {
  Allocation out;
  out.scheduler = "slurm";
  out.nodes = {node("g1", 16, {{"2", "5", "6", "7"}}),
               node("g2", 16, {{"GPU-a", "GPU-b", "GPU-c", "GPU-d"}})};
  return out;
}

std::size_t number(const std::string& text) {
  return static_cast<std::size_t>(std::stoul(text));
}

// Every variable that is a local rank to the framework; dlrun's own says nothing about devices.
std::vector<std::string> local_ranks(const RankPlan& rank) {
  std::vector<std::string> out;
  for (const auto& [name, value] : rank.environment)
    if (name.ends_with("LOCAL_RANK") && !name.starts_with("DLRUN_")) out.push_back(value);
  return out;
}

void check_rank(const plan::Adapter& framework, const RankPlan& rank) {
  CAPTURE(rank.role);
  CAPTURE(rank.rank.get());
  REQUIRE(rank.gpus.has_value());
  REQUIRE(rank.visible_gpus.has_value());
  CHECK(rank.environment.at("CUDA_VISIBLE_DEVICES") == join(*rank.visible_gpus, ","));
  if (rank.gpus->empty()) {
    CHECK(rank.visible_gpus->empty());
    for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"})
      CHECK(rank.environment.at(name).empty());
    CHECK(rank.environment.at("ZE_AFFINITY_MASK") == "1023");
    return;
  }
  std::vector<std::string> locals = local_ranks(rank);
  // MPI libraries count the ranks of a node as we do.
  if (framework.mpi == "auto" && framework.gpu_view == GpuView::node)
    locals.push_back(fmt::format("{}", rank.local_rank));
  for (const std::string& local : locals) {
    REQUIRE(number(local) < rank.visible_gpus->size());
    CHECK((*rank.visible_gpus)[number(local)] == rank.gpus->front());
  }
  for (const char* name : {"JAX_LOCAL_DEVICE_IDS", "FLAGS_selected_gpus"})
    if (const auto found = rank.environment.find(name); found != rank.environment.end())
      for (const std::string& index : split(found->second, ','))
        CHECK((*rank.visible_gpus).at(number(index)) == rank.gpus->at(number(index)));
  for (std::size_t i = 0; i < rank.gpus->size(); ++i)
    CHECK(rank.visible_gpus->at(plan::visible_positions(rank)[i]) == (*rank.gpus)[i]);
}

}  // namespace

TEST_CASE("GPU view: a rank sees its own GPUs, or those of its node with its own at its local rank") {
  std::vector<RankPlan> ranks{rank_on(0, 0, Names{"2"}), rank_on(0, 1, Names{}), rank_on(0, 2, Names{"5"}),
                              rank_on(1, 0, Names{"0"}), rank_on(1, 1, std::nullopt)};
  plan::set_visible_gpus(ranks, GpuView::own);
  for (const RankPlan& rank : ranks) CHECK(rank.visible_gpus == rank.gpus);
  plan::set_visible_gpus(ranks, GpuView::node);
  CHECK(ranks[0].visible_gpus == Names{"2", "5"});
  CHECK(ranks[1].visible_gpus == Names{});
  CHECK(ranks[2].visible_gpus == Names{"2", "5"});
  CHECK(ranks[3].visible_gpus == Names{"0"});
  CHECK_FALSE(ranks[4].visible_gpus.has_value());
  CHECK(plan::visible_positions(ranks[2]) == std::vector<std::size_t>{1});
}

TEST_CASE("GPU view: where ranks have several GPUs, the first of each comes first") {
  std::vector<RankPlan> ranks{rank_on(0, 0, Names{"0", "1"}), rank_on(0, 1, Names{"2", "3"})};
  plan::set_visible_gpus(ranks, GpuView::node);
  CHECK(ranks[0].visible_gpus == Names{"0", "2", "1", "3"});
  CHECK(ranks[1].visible_gpus == ranks[0].visible_gpus);
  CHECK(plan::visible_positions(ranks[1]) == std::vector<std::size_t>{1, 3});
}

TEST_CASE("GPU view: CUDA gives a process one MIG instance, so a rank is shown its own alone") {
  std::vector<RankPlan> ranks{rank_on(0, 0, Names{"MIG-11111111-2222"}),
                              rank_on(0, 1, Names{"MIG-33333333-4444"})};
  plan::set_visible_gpus(ranks, GpuView::node);
  CHECK(ranks[1].visible_gpus == Names{"MIG-33333333-4444"});
}

TEST_CASE("GPU view: where the vendor is not told, all three are given indices, and ids are NVIDIA's") {
  RankPlan rank = rank_on(0, 0, Names{"3"});
  rank.visible_gpus = Names{"1", "3"};
  CHECK(plan::device_variables(rank, {}) ==
        Changes{{"CUDA_VISIBLE_DEVICES", "1,3"},
                {"ROCR_VISIBLE_DEVICES", "1,3"},
                {"HIP_VISIBLE_DEVICES", "0,1"},  // HIP counts in what ROCR_VISIBLE_DEVICES leaves
                {"ZE_AFFINITY_MASK", "1,3"}});
  rank.visible_gpus = Names{"GPU-a"};
  CHECK(plan::device_variables(rank, {}) == Changes{{"CUDA_VISIBLE_DEVICES", "GPU-a"}});
  rank.visible_gpus.reset();
  CHECK(plan::device_variables(rank, {}).empty());
}

TEST_CASE("GPU view: each vendor's libraries are told in their own words; no GPU hides all") {
  RankPlan rank = rank_on(0, 0, Names{"4"});
  rank.visible_gpus = Names{"4", "6"};
  CHECK(plan::device_variables(rank, GpuVendor::nvidia) == Changes{{"CUDA_VISIBLE_DEVICES", "4,6"}});
  CHECK(plan::device_variables(rank, GpuVendor::amd) == Changes{{"ROCR_VISIBLE_DEVICES", "4,6"},
                                                                {"HIP_VISIBLE_DEVICES", "0,1"},
                                                                {"CUDA_VISIBLE_DEVICES", "0,1"}});
  rank.visible_gpus = Names{"0.1", "1.0"};
  CHECK(plan::device_variables(rank, GpuVendor::intel) == Changes{{"ZE_AFFINITY_MASK", "0.1,1.0"}});
  rank.visible_gpus = Names{};
  for (const std::optional<GpuVendor> vendor :
       {std::optional<GpuVendor>(), std::optional(GpuVendor::amd), std::optional(GpuVendor::intel)})
    CHECK(plan::device_variables(rank, vendor) == Changes{{"CUDA_VISIBLE_DEVICES", ""},
                                                          {"ROCR_VISIBLE_DEVICES", ""},
                                                          {"HIP_VISIBLE_DEVICES", ""},
                                                          {"ZE_AFFINITY_MASK", "1023"}});
}

TEST_CASE("GPU view: LOCAL_RANK is the index of the rank's own GPU in every framework") {
  const auto all = plan::all_adapters(plan::adapter_path({}, "", TEST_SOURCE_DIR));
  REQUIRE_MESSAGE(all.has_value(), error_of(all));
  for (const plan::Adapter& framework : *all) {
    if (framework.process == plan::ProcessModel::per_job) continue;  // started by its own launcher
    CAPTURE(framework.name);
    for (const char* resources : {"{gpus-per-node: 4}", "{gpus-per-node: 4, tasks-per-node: 2}"}) {
      CAPTURE(resources);
      const std::string text = std::string("resources: ") + resources +
                               (framework.name == "builtin" ? "\nframework: builtin\ntrain: {model: m}\n"
                                                            : "\ncommand: [python, train.py]\n");
      const auto plan = plan::make_plan(input(text, two_nodes(), framework));
      REQUIRE_MESSAGE(plan.has_value(), error_of(plan));
      bool any_gpu = false;
      for (const RankPlan& rank : plan->ranks) {
        check_rank(framework, rank);
        any_gpu = any_gpu || !rank.gpus->empty();
        const bool needs_node = !local_ranks(rank).empty() && !rank.gpus->empty();
        CHECK((!needs_node || framework.gpu_view == GpuView::node));
      }
      CHECK(any_gpu);
    }
  }
}

TEST_CASE("GPU view: accelerate is told of several processes only where there are several") {
  const auto accelerate = plan::find_adapter(plan::adapter_path({}, "", TEST_SOURCE_DIR), "accelerate", "");
  REQUIRE_MESSAGE(accelerate.has_value(), error_of(accelerate));
  struct {
    int gpus;
    const char* flag;
    bool flagged;
  } const table[] = {{0, "--cpu", true},
                     {0, "--multi_gpu", false},
                     {1, "--cpu", false},
                     {1, "--multi_gpu", false},
                     {2, "--multi_gpu", true}};
  for (const auto& row : table) {
    CAPTURE(row.gpus);
    CAPTURE(row.flag);
    const std::string resources =
        row.gpus == 0 ? "{nodes: 1}" : fmt::format("{{gpus-per-node: {}}}", row.gpus);
    const auto plan = plan::make_plan(input("resources: " + resources + "\ncommand: [python, train.py]\n",
                                            machine(4, Names{"0", "1"}), *accelerate));
    REQUIRE_MESSAGE(plan.has_value(), error_of(plan));
    const Argv& argv = plan->ranks.front().argv;
    CHECK((std::find(argv.begin(), argv.end(), row.flag) != argv.end()) == row.flagged);
  }
}
