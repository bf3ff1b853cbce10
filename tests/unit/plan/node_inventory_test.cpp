#include "src/plan/node_inventory.hpp"

#include <doctest/doctest.h>

#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using plan::Inventories;
using Names = std::vector<std::string>;

namespace {

constexpr const char* kTwoGpus = "command: [x]\nresources: {gpus-per-node: 2}\n";

Allocation two_hosts(const std::string& scheduler = "hostfile") {
  Allocation out;
  out.scheduler = scheduler;
  out.nodes = {{.host = HostName("n1"), .slots = 2, .cpus = {}, .gpus = {}},
               {.host = HostName("n2"), .slots = 2, .cpus = {}, .gpus = {}}};
  return out;
}

// The plan before the nodes have answered, and after.
Result<plan::Plan> provisional(const std::string& text, const Allocation& allocation) {
  plan::PlanInput in = input(text, allocation);
  in.allocation = plan::with_stand_ins(allocation, in.spec);
  return make_plan(in);
}

Result<plan::Plan> planned_with(const std::string& text, const Inventories& told) {
  plan::PlanInput in = input(text, two_hosts());
  plan::fill_in(in.allocation, told, in.spec);
  return make_plan(in);
}

}  // namespace

TEST_CASE("inventory: a plan with GPUs that nobody tells stands until the nodes have answered") {
  const plan::Plan before = provisional(kTwoGpus, two_hosts()).value();
  REQUIRE(before.world_size() == 4);
  CHECK(plan::has_stand_ins(before));
  const plan::NodeQuestions questions = plan::questions_about(two_hosts(), before, job(kTwoGpus).value());
  CHECK(questions.gpus);
  CHECK(questions.cpus);
  CHECK(plan::asked_at_the_start(two_hosts(), questions) ==
        "the cores of n[1-2] and the GPUs of n[1-2] are queried from the nodes at the start");
  const plan::Plan after = planned_with(kTwoGpus, {{"n1", {.cpus = 8, .gpus = Names{"0", "1"}}},
                                                   {"n2", {.cpus = 8, .gpus = Names{"2", "5", "7"}}}})
                               .value();
  REQUIRE(after.world_size() == 4);
  CHECK_FALSE(plan::has_stand_ins(after));
  CHECK(after.ranks[3].gpus == Names{"5"});
  const plan::JobSpec spec = job(kTwoGpus).value();
  CHECK_FALSE(plan::without_stand_ins(plan::with_stand_ins(two_hosts(), spec)).nodes[0].gpus.has_value());
  CHECK(after.ranks[3].cpus == plan::CpuShare{.share = 1, .of = 2});
  CHECK(after.ranks[3].defaults.at("OMP_NUM_THREADS") == "4");
}

TEST_CASE("inventory: a node that has less than the job asks for is named with what it has") {
  const auto planned = planned_with(
      kTwoGpus, {{"n1", {.cpus = 8, .gpus = Names{"0", "1"}}}, {"n2", {.cpus = 8, .gpus = Names{"0"}}}});
  CHECK(planned.error().kind == ErrorKind::allocation);
  CHECK(error_of(planned) ==
        "job.yaml:2:28: the job asks for 2 GPUs per node, but 1 of 2 nodes does not have them\n"
        "  n2 has 1 GPU: 0\n"
        "  hint: request fewer GPUs with --gpus-per-node, or get other nodes");
  CHECK(error_of(planned_with(kTwoGpus, {{"n1", {.cpus = 8}}, {"n2", {.cpus = 8}}}))
            .find("n1: its GPUs are unknown") != std::string::npos);
  CHECK(error_of(planned_with("command: [x]\nresources: {cpus-per-task: 4, tasks-per-node: 2}\n",
                              {{"n1", {.cpus = 8}}, {"n2", {.cpus = 4}}}))
            .find("2 tasks of 4 cores need 8 cores, and n2 has 4") != std::string::npos);
}

TEST_CASE("inventory: what the scheduler told stays, and the evidence says what was asked") {
  Allocation allocation = two_hosts();
  allocation.nodes[0].cpus = 4;
  allocation.nodes[0].gpus = Names{"3"};
  plan::fill_in(allocation,
                {{"n1", {.cpus = 64, .gpus = Names{"0", "1"}}},
                 {"n2", {.cpus = 16, .gpus = Names{"0"}, .gpu_source = "NVML: 1 GPUs"}}},
                job("command: [x]\n").value());
  CHECK(allocation.nodes[0].cpus == 4);
  CHECK(allocation.nodes[0].gpus == Names{"3"});
  CHECK(allocation.nodes[1].cpus == 16);
  CHECK(allocation.evidence == Names{"queried from the nodes: cores of n2",
                                     "queried from the nodes: GPUs of n2 (n2: NVML: 1 GPUs)"});
}

TEST_CASE("inventory: where a slot is a core, a node has as many cores as slots were granted") {
  const Inventories told{{"n1", {.cpus = 64}}, {"n2", {.cpus = 1}}};
  Allocation granted = two_hosts("gridengine");
  plan::fill_in(granted, told, job("command: [x]\n").value());
  CHECK(granted.nodes[0].cpus == 2);
  CHECK(granted.nodes[1].cpus == 1);
  granted = two_hosts("gridengine");
  plan::fill_in(granted, told, job("command: [x]\nresources: {cpus-per-task: 8}\n").value());
  CHECK(granted.nodes[0].cpus == 64);
}

TEST_CASE("inventory: nothing is asked where all is told, and no GPUs where the job wants none") {
  const Allocation known = machine(4, Names{"0"});
  const plan::JobSpec no_gpus = job("command: [x]\n").value();
  CHECK_FALSE(plan::questions_about(known, make_plan(input("command: [x]\n", known)).value(), no_gpus).any());
  CHECK_FALSE(plan::questions_about(two_hosts(), provisional(kTwoGpus, two_hosts()).value(), no_gpus).gpus);
  Allocation local = machine(4);  // it has been asked already
  CHECK_FALSE(plan::with_stand_ins(local, job(kTwoGpus).value()).nodes[0].gpus.has_value());
}

TEST_CASE("inventory: nodes that the plan leaves out are not asked about") {
  Allocation allocation = two_hosts();
  allocation.nodes[0].cpus = 4;
  const std::string one = "command: [x]\nresources: {nodes: 1}\n";
  CHECK_FALSE(
      plan::questions_about(allocation, provisional(one, allocation).value(), job(one).value()).any());
}

TEST_CASE("inventory: an answer survives its JSON form, and a malformed one is an error") {
  const plan::NodeInventory told{.cpus = 8,
                                 .gpus = Names{"0", "MIG-1"},
                                 .gpu_source = "NVML: 2 GPUs",
                                 .gpu_vendor = GpuVendor::amd,
                                 .cpu_model = "Xeon"};
  const auto back = plan::inventory_from_json(to_json(told), "n1").value();
  CHECK(back.cpus == told.cpus);
  CHECK(back.gpus == told.gpus);
  CHECK(back.gpu_source == told.gpu_source);
  CHECK(back.gpu_vendor == told.gpu_vendor);
  CHECK(back.cpu_model == "Xeon");
  CHECK_FALSE(plan::inventory_from_json(to_json(plan::NodeInventory{}), "n1")->gpus.has_value());
  for (const char* text :
       {R"({})", R"({"cpus":0,"gpus":null,"gpu_source":""})", R"({"cpus":1,"gpus":[1],"gpu_source":""})",
        R"({"cpus":1,"gpus":[],"gpu_source":"","gpu_vendor":"voodoo"})"})
    CHECK_FALSE(plan::inventory_from_json(parse_json(text, "n1").value(), "n1").has_value());
}
