#include "src/agent/gpu_holders.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"

using namespace dlrun;
using namespace dlrun::agent;
using Names = std::vector<std::string>;

namespace {

const std::vector<DriverGpu> kTwoGpus{{.index = 0, .uuid = "GPU-aaaa"}, {.index = 1, .uuid = "GPU-bbbb"}};

plan::RankPlan with_gpus(int rank, const std::string& role, std::optional<Names> gpus) {
  plan::RankPlan out;
  out.rank = Rank(rank);
  out.role = role;
  out.task_index = rank;
  out.gpus = std::move(gpus);
  return out;
}

}  // namespace

TEST_CASE("GPU holders: ranks on their own GPUs, by index or id, and processes below them count") {
  const plan::RankPlan first = with_gpus(0, "worker", Names{"0"}),
                       second = with_gpus(1, "worker", Names{"GPU-bbbb"});
  const GpuUse use{.gpus = kTwoGpus,
                   .holders = {{.gpu = 0, .pid = 10}, {.gpu = 1, .pid = 21}, {.gpu = 0, .pid = 99}}};
  const auto found = holders_of({{&first, {10}}, {&second, {20, 21}}}, use);
  CHECK(to_text(to_json(found)) ==
        R"([{"rank":0,"held":["0"],"not_its_own":[]},{"rank":1,"held":["1"],"not_its_own":[]}])");
  CHECK(warnings_about(found).empty());
  CHECK_FALSE(any_waited_for(found));
}

TEST_CASE("GPU holders: a rank on another one's GPU and a role without GPUs that holds one are named") {
  const plan::RankPlan worker = with_gpus(1, "worker", Names{"1"}), ps = with_gpus(2, "ps", Names{});
  const GpuUse use{.gpus = kTwoGpus,
                   .holders = {{.gpu = 0, .pid = 20}, {.gpu = 1, .pid = 20}, {.gpu = 1, .pid = 30}}};
  CHECK(
      warnings_about(holders_of({{&worker, {20}}, {&ps, {30}}}, use)) ==
      Names{
          "rank 1 (worker 1) computes on GPU 0, and the job gives it GPU 1; does its program take the device "
          "of its local rank?",
          "rank 2 (ps 2) computes on GPU 1, and the job gives it no GPU"});
}

TEST_CASE("GPU holders: no judgement if the job does not set GPUs, or if the driver has other names") {
  const plan::RankPlan unsaid = with_gpus(0, "worker", std::nullopt),
                       unknown = with_gpus(1, "worker", Names{"7"});
  const GpuUse use{.gpus = kTwoGpus, .holders = {{.gpu = 0, .pid = 10}, {.gpu = 0, .pid = 20}}};
  const auto found = holders_of({{&unsaid, {10}}, {&unknown, {20}}}, use);
  REQUIRE(found.size() == 1);
  CHECK(found[0].held == Names{"0"});
  CHECK(warnings_about(found).empty());
}

TEST_CASE("GPU holders: a rank that holds none yet is waited for, one that is to have none is not") {
  const plan::RankPlan worker = with_gpus(0, "worker", Names{"0"}), ps = with_gpus(1, "ps", Names{});
  CHECK(any_waited_for(holders_of({{&worker, {10}}, {&ps, {20}}}, {.gpus = kTwoGpus, .holders = {}})));
  CHECK_FALSE(any_waited_for(holders_of({{&ps, {20}}}, {.gpus = kTwoGpus, .holders = {}})));
}
