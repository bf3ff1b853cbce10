// Sums of shards on GPUs, with a fake NCCL whose ranks are threads and whose device memory is the host's: the
// bits of the tree over the shards at any number of ranks, in every step.
#include "runtime/comm/allreduce/device_shard_sums.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "runtime/comm/allreduce/shard_tree.hpp"
#include "tests/unit/comm/arrays.hpp"
#include "tests/unit/comm/fake_device.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {
namespace {

using test::FakeDevice;

constexpr std::size_t kFloats = 1000;
// As backward gives them: the last gradients first; one is too short to be divided.
struct Slice {
  std::size_t offset, length;
};
constexpr std::array<Slice, 4> kBuckets{{{600, 400}, {108, 492}, {8, 100}, {0, 8}}};

std::vector<float> gradients_of(int shard, int step) {
  std::vector<float> out(kFloats);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = std::sin(static_cast<float>(i) * 1.7F + static_cast<float>(shard * 31 + step));
  return out;
}

std::vector<float> tree_sum(int shards, int step) {
  Arrays all;
  std::vector<const float*> terms;
  for (int shard = 0; shard < shards; ++shard) all.push_back(gradients_of(shard, step));
  for (const std::vector<float>& one : all) terms.push_back(one.data());
  std::vector<float> out(kFloats);
  add_in_tree(tree_plan(shards, shards), terms, out.data(), out.size());
  return out;
}

// As an engine calls it: one arena, in which each shard's gradients lie in turn.
void take_step(DeviceAllreduce& sum, const ShardRange& own, int step, std::vector<float>& arena) {
  for (int shard = own.begin; shard < own.end; ++shard) {
    const std::vector<float> gradients = gradients_of(shard, step);
    std::copy(gradients.begin(), gradients.end(), arena.begin());
    if (shard + 1 < own.end)
      REQUIRE(sum.keep(static_cast<std::size_t>(shard - own.begin), arena.data(), arena.size(), nullptr));
  }
  for (const Slice& bucket : kBuckets) REQUIRE(sum.sum(arena.data() + bucket.offset, bucket.length, nullptr));
}

bool has_bits(const std::vector<float>& one, const std::vector<float>& other) {
  return std::memcmp(one.data(), other.data(), kFloats * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("sums on devices have the bits of the tree over the shards, whatever ranks have them") {
  struct Case {
    int shards, ranks;
  };
  for (const Case& one : {Case{1, 1}, {4, 1}, {7, 1}, {2, 2}, {3, 2}, {4, 2}, {8, 3}, {13, 5}, {4, 4}}) {
    CAPTURE(one.shards);
    CAPTURE(one.ranks);
    std::atomic<int> right{0};
    test::on_ranks(one.ranks, [&](Communicator& world) {
      const auto made = make_device_shard_sums(world, std::make_shared<FakeDevice>(), one.shards, FAKE_NCCL);
      REQUIRE(made);
      CHECK(made->sum->keeps());
      std::vector<float> arena(kFloats);
      for (int step = 0; step < 3; ++step) {
        take_step(*made->sum, shards_of(one.shards, world.rank(), one.ranks), step, arena);
        if (has_bits(arena, tree_sum(one.shards, step))) ++right;
      }
      CHECK(made->sum->check());
      REQUIRE(world.barrier());
    });
    CHECK(right == 3 * one.ranks);
  }
}

TEST_CASE("a rank sends its terms of each part to the part's owner, who adds them and sends the sum to all") {
  test::on_ranks(2, [](Communicator& world) {
    const auto made = make_device_shard_sums(world, std::make_shared<FakeDevice>(), 3, FAKE_NCCL);
    REQUIRE(made);
    CHECK(made->description == "NCCL 2.28.3 in the order of the shards");
    std::vector<float> arena(kFloats, 1);
    (void)test::nccl_log();
    if (world.rank() == 1) REQUIRE(made->sum->keep(0, arena.data(), kFloats, nullptr));
    REQUIRE(made->sum->sum(arena.data(), 320, nullptr));
    CHECK(test::nccl_log() ==
          (world.rank() == 1 ? "copy 4000, group, send 640 to 0, send 640 to 0, receive 640 from 0, end, add "
                               "160, add 160, group, send 640 to 0, receive 640 from 0, end"
                             : "group, send 640 to 1, receive 640 from 1, receive 640 from 1, end, add 160, "
                               "add 160, group, send 640 to 1, receive 640 from 1, end"));
    REQUIRE(world.barrier());
  });
}

TEST_CASE("a rank alone needs no NCCL") {
  test::on_ranks(1, [](Communicator& world) {
    const auto made =
        make_device_shard_sums(world, std::make_shared<FakeDevice>(), 2, "libnccl-nowhere.so.2");
    REQUIRE(made);
    CHECK(made->description == "the GPU alone");
    std::vector<float> arena(kFloats);
    (void)test::nccl_log();
    take_step(*made->sum, {0, 2}, 0, arena);
    CHECK(has_bits(arena, tree_sum(2, 0)));
    CHECK(test::nccl_log() == "copy 4000, add 400, add 492, add 100, add 8");
  });
}

TEST_CASE("a batch more than the rank has, and a sum without those before it, are errors") {
  test::on_ranks(1, [](Communicator& world) {
    const auto made = make_device_shard_sums(world, std::make_shared<FakeDevice>(), 2, FAKE_NCCL);
    REQUIRE(made);
    std::vector<float> arena(kFloats);
    CHECK(!made->sum->sum(arena.data(), kFloats, nullptr));
    CHECK(!made->sum->keep(1, arena.data(), kFloats, nullptr));
  });
}

}  // namespace dlrun::runtime
