#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "src/plan/placement.hpp"
#include "src/plan/plan_text.hpp"
#include "src/plan/slice_texts.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

using Random = std::mt19937;

int pick(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

std::string some_text(Random& random) {
  static const std::vector<std::string> parts{"a",  "B",     "0", " ",  "\n",   "'", "\"",
                                              "\\", "{{x}}", "é", "名", "\x01", ":"};
  std::string out;
  for (int i = pick(random, 0, 8); i > 0; --i) out += parts[static_cast<std::size_t>(pick(random, 0, 12))];
  return out;
}

std::vector<std::string> some_list(Random& random) {
  std::vector<std::string> out;
  for (int i = pick(random, 0, 3); i > 0; --i) out.push_back(some_text(random));
  return out;
}

plan::EnvironmentChanges some_changes(Random& random) {
  plan::EnvironmentChanges out;
  for (int i = pick(random, 0, 4); i > 0; --i) out["V" + some_text(random)] = some_text(random);
  return out;
}

// Any plan that keeps what the format promises: dense ranks, on nodes that exist.
plan::Plan some_plan(Random& random) {
  plan::Plan out;
  out.name = some_text(random);
  out.job_id = some_text(random);
  out.attempt = pick(random, 1, 9);
  out.framework = some_text(random);
  out.process = static_cast<plan::ProcessModel>(pick(random, 0, 2));
  out.mpi = static_cast<plan::MpiProtocol>(pick(random, 0, 3));
  out.working_directory = some_text(random);
  out.run_directory = some_text(random);
  out.prolog = {.module_paths = some_list(random),
                .modules = some_list(random),
                .activate = some_text(random),
                .setup = some_list(random)};
  out.environment = some_changes(random);
  out.limits = {Seconds(pick(random, 0, 1000) / 8.0), Seconds(pick(random, 0, 1000) / 8.0),
                Seconds(pick(random, 0, 1000) / 8.0)};
  if (pick(random, 0, 1) == 1)
    out.elastic = plan::Elastic{.min_nodes = pick(random, 1, 9), .min_ranks = pick(random, 1, 9)};
  if (pick(random, 0, 1) == 1)
    out.parallel = plan::parallel_of({.tensor = pick(random, 1, 3), .pipeline = pick(random, 1, 3)}, 36);
  for (auto& [name, content] : some_changes(random)) out.files.emplace(std::move(name), std::move(content));
  for (int i = pick(random, 0, 2); i > 0; --i) out.checks.push_back(some_list(random));
  for (int i = 0, n = pick(random, 1, 5); i < n; ++i)
    out.nodes.push_back({.index = NodeIndex(i), .host = HostName(some_text(random))});
  for (int i = 0, n = pick(random, 0, 12); i < n; ++i) {
    plan::RankPlan rank;
    rank.rank = Rank(i);
    rank.role = some_text(random);
    rank.task_index = pick(random, 0, 99);
    rank.node = NodeIndex(pick(random, 0, static_cast<int>(out.nodes.size()) - 1));
    rank.local_rank = LocalRank(pick(random, 0, 99));
    if (pick(random, 0, 1) == 1) rank.gpus = some_list(random);
    if (pick(random, 0, 1) == 1)
      rank.cpus = plan::CpuShare{.share = pick(random, 0, 3), .of = pick(random, 4, 9)};
    if (out.parallel) rank.group_ranks = plan::group_ranks(*out.parallel, i);
    rank.environment = some_changes(random);
    rank.defaults = some_changes(random);
    rank.argv = some_list(random);
    rank.argv.insert(rank.argv.begin(), "program");
    out.ranks.push_back(std::move(rank));
  }
  return out;
}

}  // namespace

TEST_CASE("plan -> JSON text -> plan is the identity") {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const Json json = to_json(some_plan(random));
    const auto again = plan::plan_from_json(parse_json(to_text(json), "plan").value());
    REQUIRE_MESSAGE(again.has_value(), error_of(again));
    REQUIRE(to_json(*again) == json);
  }
}

TEST_CASE("the text that is made rank by rank is the text of the whole") {
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    const plan::Plan whole = some_plan(random);
    REQUIRE(plan::to_pretty_text(whole) == to_pretty_text(to_json(whole)));
  }
}

TEST_CASE("slices divide the ranks among the nodes, and survive JSON") {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const plan::Plan whole = some_plan(random);
    const plan::Slicer slicer(whole);
    std::size_t ranks = 0;
    for (const plan::NodePlan& node : whole.nodes) {
      const plan::NodeSlice slice = slicer.slice_of(node.index);
      CHECK(slice.world_size() == whole.world_size());
      CHECK(std::count(slice.node_of_rank.begin(), slice.node_of_rank.end(), node.index.get()) ==
            static_cast<int>(slice.plan.ranks.size()));
      for (const plan::RankPlan& rank : slice.plan.ranks) CHECK(rank.node == node.index);
      ranks += slice.plan.ranks.size();
      const Json json = to_json(slice);
      const auto again = plan::slice_from_json(parse_json(to_text(json), "slice").value());
      REQUIRE_MESSAGE(again.has_value(), error_of(again));
      CHECK(to_json(*again) == json);
      const std::string text = plan::SliceTexts(whole).of(node.index);
      const auto of_text = plan::slice_from_json(parse_json(text, "slice").value());
      REQUIRE_MESSAGE(of_text.has_value(), error_of(of_text));
      CHECK(to_json(*of_text) == json);
    }
    CHECK(ranks == whole.ranks.size());
  }
}

TEST_CASE("the slices of many equal nodes say what they share in a few bytes") {
  plan::Plan whole;
  for (int i = 0; i < 5000; ++i) {
    whole.nodes.push_back({.index = NodeIndex(i), .host = HostName(fmt::format("n{:05}", i + 1))});
    plan::RankPlan rank;
    rank.rank = Rank(i);
    rank.node = NodeIndex(i);
    rank.argv = {"train"};
    whole.ranks.push_back(rank);
  }
  const std::string text = plan::SliceTexts(whole).of(NodeIndex(4321));
  CHECK(text.size() < 3000);
  const auto slice = plan::slice_from_json(parse_json(text, "slice").value());
  REQUIRE_MESSAGE(slice.has_value(), error_of(slice));
  CHECK(slice->plan.nodes.at(4999).host.get() == "n05000");
  CHECK(slice->world_size() == 5000);
  CHECK(slice->plan.ranks.at(0).rank == Rank(4321));
}

TEST_CASE("whatever the nodes are like, ranks are dense and contiguous, and GPUs and cores are used once") {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    Allocation allocation;
    allocation.scheduler = "slurm";
    const int gpus = pick(random, 1, 4) * 2, tasks = gpus / pick(random, 1, 2);
    for (int n = pick(random, 1, 6); n > 0; --n) {
      std::vector<std::string> names;
      for (int g = pick(random, gpus, gpus + 3); g > 0; --g) names.push_back(fmt::format("{}-{}", n, g));
      allocation.nodes.push_back(node(fmt::format("h{}", n), pick(random, 1, 64), names));
    }
    const auto spec =
        job(fmt::format("command: [x]\nresources: {{gpus-per-node: {}, tasks-per-node: {}}}\n", gpus, tasks))
            .value();
    const auto placed =
        plan::place(spec, plan::roles_of_job(spec, plain()).value(), allocation, plan::ProcessModel::per_rank)
            .value();
    REQUIRE(placed.ranks.size() == allocation.nodes.size() * static_cast<std::size_t>(tasks));
    std::map<std::string, int> uses;
    for (std::size_t r = 0; r < placed.ranks.size(); ++r) {
      const plan::RankPlan& rank = placed.ranks[r];
      CHECK(rank.rank == Rank(static_cast<int>(r)));
      CHECK(rank.node.get() == static_cast<int>(r) / tasks);
      CHECK(rank.local_rank.get() == static_cast<int>(r) % tasks);
      CHECK(rank.gpus->size() == static_cast<std::size_t>(gpus / tasks));
      for (const std::string& gpu : *rank.gpus) CHECK(++uses[gpu] == 1);
      if (rank.cpus) CHECK(rank.cpus->share < rank.cpus->of);
      CHECK(rank.cpus.has_value() ==
            (*allocation.nodes[static_cast<std::size_t>(rank.node.get())].cpus >= tasks));
    }
  }
}

TEST_CASE("a plan that breaks its promises is refused") {
  Random random(4);
  plan::Plan good = some_plan(random);
  while (good.ranks.size() < 2) good = some_plan(random);
  const auto broken = [&](const std::string& pointer, const Json& value) {
    Json json = to_json(good);
    json[Json::json_pointer(pointer)] = value;
    return error_of(plan::plan_from_json(json));
  };
  CHECK(broken("/schema", "dlrun.plan/2") ==
        "plan: schema 'dlrun.plan/2' is not 'dlrun.plan/1': another version wrote it");
  CHECK(broken("/attempt", 1.5) == "plan: field 'attempt' must be a whole number in [1, 10000000], not 1.5");
  CHECK(broken("/attempt", 1e300).starts_with("plan: field 'attempt' must be a whole number"));
  CHECK(broken("/mpi", "smoke") == "plan: field 'mpi': 'smoke' is not known");
  CHECK(broken("/limits/grace", -1) == "plan: field 'grace' is not a number of seconds: -1");
  CHECK(broken("/ranks/1/rank", 0) == "plan: rank 0 is at position 1");
  CHECK(broken("/ranks/0/node", 99) == fmt::format("plan: rank 0 is on node 99 of {}", good.nodes.size()));
  CHECK(broken("/ranks/0/cpus", {{"share", 2}, {"of", 2}}) == "plan: share 2 of 2 does not exist");
  CHECK(broken("/ranks/0/argv", Json::array()) == "plan: rank 0 has no command");
  CHECK(broken("/ranks", "many") == "plan: field 'ranks' is not a list");
  CHECK(broken("/nodes/0/index", 1) == "plan: node 1 is at position 0");
  CHECK(error_of(plan::plan_from_json(Json(3))) == "plan: field 'schema' is missing");
}
