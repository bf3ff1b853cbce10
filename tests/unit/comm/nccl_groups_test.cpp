// Process groups on GPUs, with a fake NCCL whose ranks are threads and whose device memory is the host's.
#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "runtime/comm/elastic/elastic_world.hpp"
#include "runtime/comm/nccl/communicator.hpp"
#include "runtime/comm/nccl/group.hpp"
#include "tests/unit/comm/fake_device.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {
namespace {

// Every collective among the GPUs of these ranks of the world, in this order.
bool all_are_right(NcclCommunicator& gpus, const std::vector<int>& members, int world_rank) {
  if (gpus.size() != static_cast<int>(members.size())) return false;
  const auto own = static_cast<float>(world_rank), ranks = static_cast<float>(members.size());
  float sum = 0;
  for (const int member : members) sum += static_cast<float>(member);
  std::vector<float> data(6, own), blocks(2 * members.size()), all(members.size()), mine(2);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<float>(i);
  if (!gpus.allreduce(data.data(), data.size(), nullptr) || data != std::vector<float>(6, sum)) return false;
  if (!gpus.reduce_scatter(blocks.data(), mine.data(), 2, nullptr)) return false;
  if (mine[1] != ranks * static_cast<float>(2 * gpus.rank() + 1)) return false;
  if (!gpus.allgather(&own, all.data(), sizeof own, nullptr)) return false;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != static_cast<float>(members[i])) return false;
  float word = own, other = -1;
  if (!gpus.broadcast(&word, sizeof word, gpus.size() - 1, nullptr) ||
      word != static_cast<float>(members.back()))
    return false;
  const int right = (gpus.rank() + 1) % gpus.size(), left = (gpus.rank() + gpus.size() - 1) % gpus.size();
  const auto passed = gpus.together([&]() -> Result<void> {
    TRY(gpus.send(&own, sizeof own, right, nullptr));
    return gpus.receive(&other, sizeof other, left, nullptr);
  });
  return passed && other == static_cast<float>(members[static_cast<std::size_t>(left)]) && gpus.check();
}

// Of a world whose launcher may call for another one.
class CalledWorld final : public ElasticWorld {
 public:
  explicit CalledWorld(int generation = 0) : generation_(generation) {}
  std::atomic<bool> lost{false};

 private:
  Result<Joined> regroup(std::uint64_t, Cause) override { return Joined{}; }
  bool is_asked() const override { return false; }
  bool is_lost() const override { return lost; }
  int generation() const override { return generation_; }
  bool has_world() const override { return true; }
  void set_job(const std::string&) override {}
  Result<void> part(std::uint64_t) override { return {}; }
  int generation_;
};

Error await_failure(NcclCommunicator& gpus) {
  Result<void> state;
  while (state) state = gpus.check();
  return state.error();
}

}  // namespace

TEST_CASE("GPUs have all collectives, and so have groups of them: uneven, reordered, nested, of one") {
  const int before = (*test::from_fake_nccl<int()>("fake_nccl_destroyed"))();
  std::atomic<int> right{0};
  test::on_ranks(5, [&](Communicator& world) {
    const auto gpus = NcclCommunicator::connect(world, world, FAKE_NCCL);
    REQUIRE(gpus);
    CHECK((*gpus)->name() == "NCCL 2.28.3");
    const int rank = world.rank();
    const auto group = (*gpus)->split(rank < 3 ? 0 : 1, -rank);  // 2 1 0 | 4 3
    REQUIRE(group);
    const auto nested = (*group)->split((*group)->rank() == 1 ? 1 : 0, 0);  // 2 0 | 1 | 4 | 3
    REQUIRE(nested);
    const std::vector<std::vector<int>> groups{{2, 1, 0}, {2, 1, 0}, {2, 1, 0}, {4, 3}, {4, 3}};
    const std::vector<std::vector<int>> nests{{2, 0}, {1}, {2, 0}, {3}, {4}};
    const auto at = static_cast<std::size_t>(rank);
    if (all_are_right(**gpus, {0, 1, 2, 3, 4}, rank) && all_are_right(**group, groups[at], rank) &&
        all_are_right(**nested, nests[at], rank))
      ++right;
    REQUIRE(world.barrier());
  });
  CHECK(right == 5);
  CHECK((*test::from_fake_nccl<int()>("fake_nccl_destroyed"))() == before + 15);
}

TEST_CASE("parts of any lengths are summed where they belong, and come to all ranks") {
  std::atomic<int> right{0};
  test::on_ranks(3, [&](Communicator& world) {
    const auto group = make_nccl_group(world, world, FAKE_NCCL);
    REQUIRE(group);
    DeviceGroup& gpus = *group->group;
    CHECK(gpus.ranks() == 3);
    const std::vector<std::size_t> borders{0, 4, 4, 7};  // nothing of the second rank's
    const auto own = static_cast<float>(gpus.rank() + 1);
    std::vector<float> data(8, own), wanted(8, own);
    REQUIRE(gpus.reduce_scatter(data.data(), borders, nullptr));
    const auto part = static_cast<std::size_t>(gpus.rank());
    std::fill(wanted.begin() + static_cast<std::ptrdiff_t>(borders[part]),
              wanted.begin() + static_cast<std::ptrdiff_t>(borders[part + 1]), 6.0F);
    const bool scattered = data == wanted;
    std::fill(data.begin(), data.end(), own);
    REQUIRE(gpus.together([&] { return gpus.allgather(data.data(), borders, nullptr); }));
    const std::vector<float> gathered{1, 1, 1, 1, 3, 3, 3, own};
    if (scattered && data == gathered) ++right;
    REQUIRE(world.barrier());
  });
  CHECK(right == 3);
}

TEST_CASE("each rank gets the sum of its slice, in place, too, and slices of bf16 as such") {
  std::atomic<int> right{0};
  test::on_ranks(2, [&](Communicator& world) {
    const auto group = make_nccl_group(world, world, FAKE_NCCL);
    REQUIRE(group);
    DeviceGroup& gpus = *group->group;
    const auto own = static_cast<std::size_t>(gpus.rank());
    std::vector<float> data{1, 2, 3, 4};
    REQUIRE(gpus.reduce_scatter(data.data(), data.data() + 2 * own, 2, DeviceNumber::f32, nullptr));
    const bool is_in_place =
        own == 0 ? data == std::vector<float>{2, 4, 3, 4} : data == std::vector<float>{1, 2, 6, 8};
    std::vector<std::uint16_t> words{0x3f80, 0x4000, 0x4040, 0x4080}, mine(2), all(4);  // 1 2 3 4
    REQUIRE(gpus.reduce_scatter(words.data(), mine.data(), 2, DeviceNumber::bf16, nullptr));
    REQUIRE(gpus.exchange(mine.data(), all.data(), 2 * sizeof(std::uint16_t), nullptr));
    if (is_in_place && all == std::vector<std::uint16_t>{0x4000, 0x4080, 0x40c0, 0x4100}) ++right;
    REQUIRE(world.barrier());
  });
  CHECK(right == 2);
}

TEST_CASE("what NCCL finds wrong ends a group too") {
  test::on_ranks(2, [](Communicator& world) {
    const auto gpus = NcclCommunicator::connect(world, world, FAKE_NCCL);
    REQUIRE(gpus);
    const auto group = (*gpus)->split(0, world.rank());
    REQUIRE(group);
    REQUIRE(world.barrier());
    (*test::from_fake_nccl<void(int)>("fake_nccl_fail"))(6);
    CHECK(await_failure(**group).kind == ErrorKind::lost);
    CHECK(!(*group)->allreduce(nullptr, 0, nullptr));
    CHECK(!(*group)->split(0, 0));
    REQUIRE(world.barrier());
  });
  (*test::from_fake_nccl<void(int)>("fake_nccl_fail"))(0);
}

TEST_CASE("in an elastic world the launcher's call ends what waits, and nobody waits for a lost rank") {
  const int before = (*test::from_fake_nccl<int()>("fake_nccl_aborted"))();
  CalledWorld called;
  test::on_ranks(2, [&](Communicator& world) {
    static_cast<test::ThreadRank&>(world).elastic_world = &called;
    const auto gpus = NcclCommunicator::connect(world, world, FAKE_NCCL);
    const auto idle = NcclCommunicator::connect(world, world, FAKE_NCCL);
    REQUIRE(gpus);
    REQUIRE(idle);
    CHECK((*gpus)->check());
    REQUIRE(world.barrier());
    called.lost = true;
    const Error error = await_failure(**gpus);
    CHECK(error.kind == ErrorKind::lost);
    CHECK(error.what == "the launcher has lost a rank");
    REQUIRE(world.barrier());
  });
  CHECK((*test::from_fake_nccl<int()>("fake_nccl_aborted"))() == before + 4);
}

TEST_CASE("in elastic worlds but the first of two ranks nobody waits inside NCCL, and all sum the same") {
  const auto begun = test::from_fake_nccl<int()>("fake_nccl_begun");
  struct Case {
    int ranks, generation, without_waiting;
  };
  for (const Case& one : {Case{2, 0, 0}, Case{3, 0, 3}, Case{2, 1, 2}}) {
    const int before = (*begun)();
    CalledWorld whole(one.generation);
    std::atomic<int> right{0};
    test::on_ranks(one.ranks, [&](Communicator& world) {
      static_cast<test::ThreadRank&>(world).elastic_world = &whole;
      const auto gpus = NcclCommunicator::connect(world, world, FAKE_NCCL);
      REQUIRE(gpus);
      std::vector<int> members;
      for (int rank = 0; rank < one.ranks; ++rank) members.push_back(rank);
      if (all_are_right(**gpus, members, world.rank())) ++right;
      REQUIRE(world.barrier());
    });
    CHECK(right == one.ranks);
    CHECK((*begun)() - before == one.without_waiting);
  }
}

TEST_CASE("where a rank is lost while three connect, the others give the connection up") {
  const auto begun = test::from_fake_nccl<int()>("fake_nccl_begun");
  const auto aborted = test::from_fake_nccl<int()>("fake_nccl_aborted");
  const int before = (*begun)(), aborted_before = (*aborted)();
  (*test::from_fake_nccl<void(int)>("fake_nccl_hold"))(2);
  CalledWorld called;
  std::thread launcher([&] {
    while ((*begun)() < before + 3) std::this_thread::yield();
    called.lost = true;
  });
  std::atomic<int> lost{0};
  test::on_ranks(3, [&](Communicator& world) {
    static_cast<test::ThreadRank&>(world).elastic_world = &called;
    const auto gpus = NcclCommunicator::connect(world, world, FAKE_NCCL);
    if (!gpus && gpus.error().kind == ErrorKind::lost) ++lost;
    REQUIRE(world.barrier());
  });
  launcher.join();
  (*test::from_fake_nccl<void(int)>("fake_nccl_hold"))(-1);
  CHECK(lost == 3);
  CHECK((*aborted)() == aborted_before + 3);
}

TEST_CASE("a rank that loses its peers while GPUs connect is not one that cannot use NCCL") {
  (*test::from_fake_nccl<void(int)>("fake_nccl_refuse"))(1);
  test::on_ranks(2, [](Communicator& world) {
    const auto gpus = NcclCommunicator::connect(world, world, FAKE_NCCL);
    REQUIRE(!gpus);
    CHECK(gpus.error().kind == ErrorKind::lost);
  });
  (*test::from_fake_nccl<void(int)>("fake_nccl_refuse"))(-1);
}

}  // namespace dlrun::runtime
