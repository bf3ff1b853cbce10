// Sums on GPUs in three parts: NCCL inside nodes, the world's own Communicator between them.
#include <atomic>

#include <doctest/doctest.h>

#include "runtime/comm/allreduce/choose_device_allreduce.hpp"
#include "tests/unit/comm/fake_device.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {

namespace {

using test::FakeDevice;

Result<NamedAllreduce> nodes_of(const char* ranks, Communicator& world, CommDtype dtype = CommDtype::f32,
                                const char* library = FAKE_NCCL,
                                const std::shared_ptr<FakeDevice>& device = std::make_shared<FakeDevice>()) {
  const auto environment =
      Environment::from_entries({"DLRUN_ALLREDUCE=hierarchical", std::string("DLRUN_NODE_RANKS=") + ranks});
  return make_device_allreduce({world, device, dtype, environment, library}, *choose_allreduce(environment));
}

// A world whose groups do not answer: their sums wait until this rank gives up, or fail as told.
class DeafWorld final : public Communicator {
 public:
  explicit DeafWorld(Communicator& world, std::optional<Error> fails_by = {})
      : world_(world), fails_by_(fails_by) {}
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::string description() const override { return world_.description(); }
  Result<void> allreduce_start(std::span<float> data, CommDtype dtype) override {
    return world_.allreduce_start(data, dtype);
  }
  Result<void> parameter_server_allreduce_start(std::span<const ServedPiece> pieces) override {
    return world_.parameter_server_allreduce_start(pieces);
  }
  Result<void> tree_allreduce_start(const TreeTerms& data) override {
    return world_.tree_allreduce_start(data);
  }
  Result<void> wait_all() override { return world_.wait_all(); }
  Result<void> allreduce(std::span<double> data) override { return world_.allreduce(data); }
  Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine, CommDtype dtype) override {
    return world_.reduce_scatter(data, mine, dtype);
  }
  Result<void> broadcast(std::span<std::byte> data, int root) override {
    return world_.broadcast(data, root);
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return world_.allgather(mine, all);
  }
  Result<void> barrier() override { return world_.barrier(); }
  Result<void> send(std::span<const std::byte> data, int to) override { return world_.send(data, to); }
  Result<void> receive(std::span<std::byte> data, int from) override { return world_.receive(data, from); }
  Result<std::unique_ptr<Communicator>> split(int color, int key) override;
  void give_up() override { given_up_ = true; }
  [[noreturn]] void abort(int) override { std::abort(); }
  Result<void> finish() override { return world_.finish(); }

 private:
  friend class DeafGroup;
  Communicator& world_;
  std::optional<Error> fails_by_;
  std::atomic<bool> given_up_ = false;
};

class DeafGroup final : public Communicator {
 public:
  DeafGroup(DeafWorld& world, std::unique_ptr<Communicator> group)
      : world_(world), group_(std::move(group)) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::string description() const override { return group_->description(); }
  Result<void> allreduce_start(std::span<float>, CommDtype) override { return {}; }
  Result<void> parameter_server_allreduce_start(std::span<const ServedPiece>) override { return {}; }
  Result<void> tree_allreduce_start(const TreeTerms&) override { return {}; }
  Result<void> wait_all() override {
    if (world_.fails_by_) return fail(*world_.fails_by_);
    while (!world_.given_up_) std::this_thread::yield();
    return fail(ErrorKind::lost, "given up");
  }
  Result<void> allreduce(std::span<double> data) override { return group_->allreduce(data); }
  Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine, CommDtype dtype) override {
    return group_->reduce_scatter(data, mine, dtype);
  }
  Result<void> broadcast(std::span<std::byte> data, int root) override {
    return group_->broadcast(data, root);
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return group_->allgather(mine, all);
  }
  Result<void> barrier() override { return group_->barrier(); }
  Result<void> send(std::span<const std::byte> data, int to) override { return group_->send(data, to); }
  Result<void> receive(std::span<std::byte> data, int from) override { return group_->receive(data, from); }
  Result<std::unique_ptr<Communicator>> split(int color, int key) override {
    return group_->split(color, key);
  }
  void give_up() override { world_.give_up(); }
  [[noreturn]] void abort(int) override { std::abort(); }
  Result<void> finish() override { return group_->finish(); }

 private:
  DeafWorld& world_;
  std::unique_ptr<Communicator> group_;
};

Result<std::unique_ptr<Communicator>> DeafWorld::split(int color, int key) {
  return std::make_unique<DeafGroup>(*this, TRY(world_.split(color, key)));
}

}  // namespace

TEST_CASE("four ranks on two nodes sum bucket by bucket, also what does not divide") {
  std::atomic<int> right{0};
  test::on_ranks(4, [&](Communicator& world) {
    const auto made = nodes_of("2", world);
    REQUIRE(made);
    CHECK(made->description == "NCCL 2.28.3 inside nodes and by threads between them (2 nodes of 2)");
    std::vector<float> numbers(20);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(i * static_cast<std::size_t>(world.rank() + 1));
    for (const auto& [at, count] : {std::pair{0, 11}, {11, 1}, {12, 6}})
      REQUIRE(made->sum->sum(numbers.data() + at, static_cast<std::size_t>(count), nullptr));
    bool all = true;
    for (std::size_t i = 0; i < 18; ++i) all = all && numbers[i] == static_cast<float>(10 * i);
    all = all && numbers[19] == static_cast<float>(19 * (world.rank() + 1));  // of no bucket
    if (all && made->sum->check()) ++right;
    REQUIRE(world.barrier());
  });
  CHECK(right == 4);
}

TEST_CASE("a share crosses in its place on the stream, with the rest that has no share a rank") {
  test::on_ranks(4, [&](Communicator& world) {
    const auto made = nodes_of("2", world);
    REQUIRE(made);
    std::vector<float> numbers(11);
    (void)test::nccl_log();
    REQUIRE(made->sum->sum(numbers.data(), 11, nullptr));
    CHECK(test::nccl_log() ==
          "group, reduce-scatter 5, all-reduce 1, end, copy 20, copy 4, call host, copy 4, copy 20, "
          "all-gather 20");
    REQUIRE(made->sum->sum(numbers.data(), 1, nullptr));
    CHECK(test::nccl_log() == "group, all-reduce 1, end, copy 4, call host, copy 4");
    REQUIRE(world.barrier());
  });
}

TEST_CASE("a 16-bit dtype is for what crosses: inside a node nothing is rounded") {
  test::on_ranks(4, [&](Communicator& world) {
    const auto made = nodes_of("2", world, CommDtype::bf16);
    REQUIRE(made);
    CHECK(made->description == "NCCL 2.28.3 inside nodes and by threads as bf16 between them (2 nodes of 2)");
    // 256 + 1 has no form in bf16, 1 has.
    std::vector<float> numbers(4, world.rank() == 0 ? 256.0F : 1.0F);
    REQUIRE(made->sum->sum(numbers.data(), 4, nullptr));
    CHECK(numbers == std::vector<float>(4, 258));  // (257 to 256, the even one) + 2
    REQUIRE(world.barrier());
  });
}

TEST_CASE("on one node it is NCCL alone, and says so") {
  test::on_ranks(2, [&](Communicator& world) {
    const auto made = nodes_of("2", world);
    REQUIRE(made);
    CHECK(made->description == "NCCL 2.28.3 alone, as all ranks are on one node");
    REQUIRE(world.barrier());
  });
}

TEST_CASE("unequal nodes, and an NCCL that is not there, are errors: nothing else takes its place") {
  test::on_ranks(3, [&](Communicator& world) {
    const auto uneven = nodes_of("2", world);
    REQUIRE(!uneven);
    CHECK(uneven.error().kind == ErrorKind::allocation);
    const auto absent = nodes_of("1", world, CommDtype::f32, "libnccl-nowhere.so.2");
    REQUIRE(!absent);
    CHECK(absent.error().kind == ErrorKind::usage);
    CHECK(absent.error().what.starts_with("DLRUN_ALLREDUCE is 'hierarchical', but NCCL cannot be loaded: "));
  });
}

TEST_CASE("a crossing that waits for a lost peer ends as soon as the loss is noticed") {
  test::on_ranks(2, [](Communicator& threads) {
    DeafWorld world(threads);
    const auto device = std::make_shared<FakeDevice>(FakeDevice::HostCalls::on_threads);
    const auto made = nodes_of("1", world, CommDtype::f32, FAKE_NCCL, device);
    REQUIRE(made);
    std::vector<float> numbers(4);
    REQUIRE(made->sum->sum(numbers.data(), 4, nullptr));
    CHECK(made->sum->check());
    REQUIRE(threads.barrier());
    (*test::from_fake_nccl<void(int)>("fake_nccl_fail"))(6);
    const Error error = test::await_failure(*made->sum);
    device->finish();  // hangs where the crossing does
    CHECK(error.what ==
          "an allreduce over the GPUs failed in NCCL 2.28.3: remote process exited or there was a network "
          "error");
    CHECK(!made->sum->sum(numbers.data(), 4, nullptr));
    REQUIRE(threads.barrier());
  });
  (*test::from_fake_nccl<void(int)>("fake_nccl_fail"))(0);
}

TEST_CASE("a crossing that fails is the error of the step, and no later one is begun") {
  test::on_ranks(2, [](Communicator& threads) {
    DeafWorld world(threads, Error{.kind = ErrorKind::lost, .what = "rank 7 on gpu03 is gone"});
    const auto made = nodes_of("1", world);
    REQUIRE(made);
    std::vector<float> numbers(4);
    REQUIRE(made->sum->sum(numbers.data(), 4, nullptr));
    const auto state = made->sum->check();
    REQUIRE(!state);
    CHECK(state.error().what == "rank 7 on gpu03 is gone");
    CHECK(!made->sum->sum(numbers.data(), 4, nullptr));
    REQUIRE(threads.barrier());
  });
}

}  // namespace dlrun::runtime
