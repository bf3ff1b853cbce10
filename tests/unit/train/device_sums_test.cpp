// Shards in a training whose engine sums gradients on its device: only the totals are left to the host.
#include <doctest/doctest.h>

#include "runtime/comm/allreduce/device_shard_sums.hpp"
#include "tests/unit/comm/fake_device.hpp"
#include "tests/unit/train/trainer_job.hpp"

namespace dlrun::runtime {
namespace {

using test::Job;

void sum_on_a_device(Job& job) {
  const int terms = *job.shards * job.spec.accumulate;
  job.computes_on_a_device = true;
  job.device_sum = [terms](Communicator& comm) {
    return std::move(
        make_device_shard_sums(comm, std::make_shared<test::FakeDevice>(), terms, FAKE_NCCL).value().sum);
  };
}

}  // namespace

TEST_CASE("sums of shards on devices have the bits of those on hosts, at any number of ranks") {
  for (const int accumulate : {1, 2}) {
    CAPTURE(accumulate);
    Job job;
    job.shards = 4;
    job.spec.accumulate = accumulate;
    const auto expected = job.run();
    sum_on_a_device(job);
    for (const int world : {1, 2, 3, 4}) {
      CAPTURE(world);
      job.world = world;
      for (const auto& rank : job.run()) {
        CHECK(test::same_bits(rank.weights, expected[0].weights));
        CHECK(test::same_bits(rank.momentum, expected[0].momentum));
        CHECK(rank.epoch_loss == expected[0].epoch_loss);
      }
    }
  }
}

TEST_CASE("a benchmark of shards on devices takes its steps, too") {
  Job job;
  job.shards = 4;
  job.world = 2;
  job.spec.benchmark = BenchmarkSpec{.warmup = 2, .steps = 5, .repeat = 3};
  sum_on_a_device(job);
  const auto out = job.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position.step == 17);
}

}  // namespace dlrun::runtime
