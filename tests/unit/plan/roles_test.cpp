#include "src/plan/roles.hpp"

#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

plan::Adapter tensorflow() {
  return adapter(
      "name: tf\nsummary: t\nroles:\n  chief: {port: 2210, most: 1}\n"
      "  worker: {default: tasks-per-node, port: 2220}\n  ps: {count: 1, gpus: 0, port: 2230}\n"
      "env: {TF_CONFIG: \"{{rank.tensorflow-config}}\"}\n");
}

Allocation cluster(const std::vector<int>& gpus) {
  Allocation out;
  out.scheduler = "slurm";
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    std::vector<std::string> names;
    for (int g = 0; g < gpus[i]; ++g) names.push_back(std::to_string(g));
    out.nodes.push_back(node(fmt::format("n{}", i + 1), 16, names));
  }
  return out;
}

// "worker@0:0,1 ps@1" : role, node and GPUs of every rank.
std::string shape(const Result<plan::Plan>& plan) {
  if (!plan) return plan.error().text();
  std::string out;
  for (const plan::RankPlan& rank : plan->ranks) {
    out += fmt::format("{}{}@{}", out.empty() ? "" : " ", rank.role, rank.node);
    if (rank.gpus && !rank.gpus->empty()) out += fmt::format(":{}", fmt::join(*rank.gpus, ","));
  }
  return out;
}

std::string planned(const std::string& roles, const std::vector<int>& gpus) {
  return shape(make_plan(input("command: [x]\n" + roles + "\n", cluster(gpus), tensorflow())));
}

}  // namespace

TEST_CASE("a parameter server is on the first node by default, and sees no GPU") {
  CHECK(planned("resources: {gpus-per-node: 1}", {1, 1}) == "worker@0:0 worker@1:0 ps@0");
  CHECK(planned("resources: {gpus-per-node: 1}\nroles: {ps: {count: 2}}", {1, 1, 1}) ==
        "worker@0:0 worker@1:0 worker@2:0 ps@0 ps@1");
}

TEST_CASE("roles on request only leave a job that names none as a framework without roles has it") {
  const auto planned_with = [](const std::string& job, bool has_roles) {
    return shape(make_plan(
        input("command: [x]\n" + job, cluster({0, 0}),
              adapter(std::string("name: r\nsummary: s\n") +
                      (has_roles ? "roles: {worker: {default: tasks-per-node}, ps: {gpus: 0}}\n" : "")))));
  };
  const std::string two = "resources: {tasks-per-node: 2}\n";
  for (const std::string& job : {std::string(), two})
    CHECK(planned_with(job, true) == planned_with(job, false));
  CHECK(planned_with(two + "roles: {ps: {count: 3}}\n", true) ==
        "worker@0 worker@0 worker@1 worker@1 ps@0 ps@0 ps@1");
  CHECK(planned_with(two + "roles: {ps: {count: 1, placement: dedicated}}\n", true) ==
        "worker@0 worker@0 ps@1");
}

TEST_CASE("every node gives as many workers as its own GPUs") {
  CHECK(planned("roles: {worker: {gpus: 2}}", {4, 2}) == "worker@0:0,1 worker@0:2,3 worker@1:0,1 ps@0");
}

TEST_CASE("a role can be on every node, or on the nodes that have none of the roles before it") {
  const auto cluster_of = adapter(
      "name: r\nsummary: s\nroles:\n  driver: {count: 1, gpus: 0}\n  head: {count: 1}\n"
      "  raylet: {default: other-nodes}\n  watcher: {default: node, gpus: 0}\n");
  const auto shape_on = [&](const std::vector<int>& gpus) {
    return shape(
        make_plan(input("command: [x]\nresources: {gpus-per-node: 2}\n", cluster(gpus), cluster_of)));
  };
  CHECK(shape_on({2, 2, 2}) == "driver@0 head@0:0,1 raylet@1:0,1 raylet@2:0,1 watcher@0 watcher@1 watcher@2");
  CHECK(shape_on({2}) == "driver@0 head@0:0,1 watcher@0");
}

TEST_CASE("a role that computes nothing takes no cores from the others") {
  const auto light = adapter(
      "name: l\nsummary: s\nroles:\n  scheduler: {count: 1, gpus: 0, light: true}\n"
      "  worker: {default: tasks-per-node}\n");
  const auto plan =
      make_plan(input("command: [x]\nresources: {tasks-per-node: 2}\n", cluster({0}), light)).value();
  CHECK_FALSE(plan.ranks[0].cpus.has_value());
  CHECK_FALSE(plan.ranks[0].defaults.contains("OMP_NUM_THREADS"));
  CHECK(plan.ranks[1].cpus == plan::CpuShare{.share = 0, .of = 2});
  CHECK(plan.ranks[2].cpus == plan::CpuShare{.share = 1, .of = 2});
  CHECK(plan.ranks[2].defaults.at("OMP_NUM_THREADS") == "8");
}

TEST_CASE("a chief is one of the workers' places, not one more") {
  CHECK(planned("resources: {gpus-per-node: 2}\nroles: {chief: {}}", {2, 2}) ==
        "chief@0:0 worker@0:1 worker@1:0 worker@1:1 ps@0");
}

TEST_CASE("a dedicated role has the last nodes, which need no GPUs") {
  CHECK(planned("resources: {gpus-per-node: 1}\nroles: {ps: {count: 1, placement: dedicated}}", {1, 1, 0}) ==
        "worker@0:0 worker@1:0 ps@2");
}

TEST_CASE("what does not fit is refused, with both counts") {
  CHECK(planned("resources: {gpus-per-node: 1}\nroles: {worker: {count: 4}}", {1, 1, 1}) ==
        "job.yaml:3:17: role worker asks for 4 tasks with 1 GPU each, but the 3 nodes have GPUs for 3\n"
        "  hint: use count: 3, or get more nodes: no GPU is given to two tasks");
  const auto in = input("command: [x]\nroles: {ps: {count: 3, placement: dedicated}}\n", cluster({1, 1, 1}),
                        tensorflow());
  const auto plan = make_plan(in);
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().kind == ErrorKind::allocation);
  CHECK(plan.error().what ==
        "dedicated roles need 3 nodes of their own (3 ps) and worker at least one more, and the job has 3 "
        "nodes");
  CHECK(planned("roles: {chief: {count: 2}}", {1})
            .starts_with("job.yaml:2:16: role chief can have a maximum of 1"));
  CHECK(planned("roles: {woker: {count: 2}}", {1}).find("did you mean 'worker'") != std::string::npos);
}

TEST_CASE("more workers than there are ports up to the next role's step over its ports") {
  const auto plan =
      make_plan(input("command: [x]\nresources: {tasks-per-node: 12}\n", cluster({0}), tensorflow())).value();
  CHECK(plan.ranks[9].port == 2229);
  CHECK(plan.ranks[10].port == 2231);
  CHECK(plan.ranks[12].port == 2230);
}

TEST_CASE(
    "a port that another program has is stepped over on that node alone, and never where the job names it") {
  const std::string job = "command: [x]\nresources: {gpus-per-node: 2}\n";
  auto one = input(job, cluster({2, 2}), tensorflow());
  one.taken_ports["n2"] = {{2220, "process 7 (nc)"}, {2222, "process 8 (nc)"}};
  const auto plan = make_plan(one).value();
  CHECK(plan.ranks[0].port == 2220);
  CHECK(plan.ranks[2].port == 2221);
  CHECK(plan.ranks[3].port == 2223);
  CHECK(plan.ranks[1].environment.at("TF_CONFIG").find("n2:2223") != std::string::npos);

  auto stated = input(job + "roles: {worker: {port: 2221}}\n", cluster({2, 2}), tensorflow());
  CHECK(make_plan(stated).value().ranks[0].port == 2221);
  stated.taken_ports = one.taken_ports;
  CHECK(make_plan(stated).error().what == "port 2222 of role worker is in use on n2 by process 8 (nc)");
}

TEST_CASE("TF_CONFIG lists every role in the order of the task indices") {
  auto allocation = cluster({1, 1});
  allocation.nodes[1].address = "10.0.0.2";
  const auto plan =
      make_plan(input("command: [x]\nresources: {gpus-per-node: 1}\n", allocation, tensorflow())).value();
  CHECK(
      plan.ranks[1].environment.at("TF_CONFIG") ==
      R"({"cluster":{"worker":["n1:2220","10.0.0.2:2220"],"ps":["n1:2230"]},"task":{"type":"worker","index":1}})");
}

TEST_CASE(
    "whatever the job and the nodes: ranks dense, roles add up, no GPU twice, ports unique, all as asked") {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  int planned_jobs = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<int> gpus;
    for (int n = pick(1, 6); n > 0; --n) gpus.push_back(pick(0, 4));
    const int workers = pick(1, 12), each = pick(0, 2), ps = pick(1, 20);
    const std::string text = fmt::format(
        "command: [x]\nroles: {{worker: {{count: {}, gpus: {}}}, ps: {{count: {}, placement: {}}}}}\n",
        workers, each, ps, pick(0, 1) == 0 ? "shared" : "dedicated");
    CAPTURE(text);
    const auto plan = make_plan(input(text, cluster(gpus), tensorflow()));
    if (!plan) {
      CHECK(plan.error().kind == ErrorKind::allocation);
      continue;
    }
    ++planned_jobs;
    std::map<std::string, int> roles;
    std::set<std::string> used_gpus, used_ports, local_ranks;
    for (std::size_t r = 0; r < plan->ranks.size(); ++r) {
      const plan::RankPlan& rank = plan->ranks[r];
      CHECK(rank.rank.get() == static_cast<int>(r));
      CHECK(rank.task_index == roles[rank.role]++);
      const std::string at = plan->nodes[static_cast<std::size_t>(rank.node.get())].host.get() + "/";
      CHECK(used_ports.insert(fmt::format("{}{}", at, rank.port.value())).second);
      CHECK(local_ranks.insert(fmt::format("{}{}", at, rank.local_rank)).second);
      CHECK(rank.gpus.value().size() == static_cast<std::size_t>(rank.role == "worker" ? each : 0));
      for (const std::string& gpu : *rank.gpus) CHECK(used_gpus.insert(at + gpu).second);
    }
    CHECK(roles == std::map<std::string, int>{{"worker", workers}, {"ps", ps}});
    CHECK(to_json(plan::plan_from_json(to_json(*plan)).value()) == to_json(*plan));
  }
  CHECK(planned_jobs > 200);
}
