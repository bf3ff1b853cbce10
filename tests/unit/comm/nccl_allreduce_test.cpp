// Sums on GPUs, with a fake NCCL whose ranks are threads and whose device memory is the host's.
#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "runtime/comm/nccl/allreduce.hpp"
#include "tests/unit/comm/fake_device.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {

namespace {

using test::await_failure;
using test::from_fake_nccl;

}  // namespace

TEST_CASE("three ranks sum what is on their devices, bucket by bucket") {
  std::atomic<int> right{0};
  test::on_ranks(3, [&](Communicator& world) {
    const auto made = make_nccl_allreduce(world, world, FAKE_NCCL);
    if (!made || made->description != "NCCL 2.28.3") return;
    std::vector<float> gradients(10, static_cast<float>(world.rank() + 1));
    if (!made->sum->sum(gradients.data(), 4, nullptr) || !made->sum->sum(gradients.data() + 4, 5, nullptr))
      return;
    const std::vector<float> expected = {6, 6, 6, 6, 6, 6, 6, 6, 6, static_cast<float>(world.rank() + 1)};
    if (gradients == expected && made->sum->check()) ++right;
    if (!world.barrier()) --right;  // nobody leaves before all have looked
  });
  CHECK(right == 3);
}

TEST_CASE("a library that is not there is an error of all ranks that says what to do") {
  test::on_ranks(2, [](Communicator& world) {
    const auto made = make_nccl_allreduce(world, world, "libnccl-nowhere.so.2");
    REQUIRE(!made);
    CHECK(made.error().kind == ErrorKind::unavailable);
    CHECK(made.error().what.starts_with("NCCL cannot be loaded: "));
    CHECK(made.error().hint == "load the site's NCCL module, or add its folder to LD_LIBRARY_PATH");
  });
}

TEST_CASE("where one rank cannot load it, the others are told which") {
  test::on_ranks(2, [](Communicator& world) {
    const auto made =
        make_nccl_allreduce(world, world, world.rank() == 1 ? "libnccl-nowhere.so.2" : FAKE_NCCL);
    REQUIRE(!made);
    CHECK(made.error().kind == ErrorKind::unavailable);
    if (world.rank() == 0) CHECK(made.error().what == "rank 1 cannot use NCCL; its log says why");
  });
}

TEST_CASE("what NCCL finds wrong while a step runs is an error in its words, and the step is let go") {
  const int before = (*from_fake_nccl<int()>("fake_nccl_aborted"))();
  test::on_ranks(2, [](Communicator& world) {
    auto made = make_nccl_allreduce(world, world, FAKE_NCCL);
    REQUIRE(made);
    CHECK(made->sum->check());
    CHECK(world.barrier());
    (*from_fake_nccl<void(int)>("fake_nccl_fail"))(6);
    const Error error = await_failure(*made->sum);
    CHECK(error.kind == ErrorKind::lost);
    CHECK(error.what ==
          "an allreduce over the GPUs failed in NCCL 2.28.3: remote process exited or there was a network "
          "error");
    CHECK(!made->sum->sum(nullptr, 0, nullptr));
  });
  (*from_fake_nccl<void(int)>("fake_nccl_fail"))(0);
  CHECK((*from_fake_nccl<int()>("fake_nccl_aborted"))() == before + 2);
}

}  // namespace dlrun::runtime
