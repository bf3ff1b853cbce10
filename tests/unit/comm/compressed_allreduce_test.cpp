// Sums on GPUs in a 16-bit dtype: two roundings, however many ranks there are, and the same bits on all.
#include "runtime/comm/allreduce/compressed_allreduce.hpp"

#include <atomic>
#include <cmath>

#include <doctest/doctest.h>

#include "tests/unit/comm/fake_device.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {

namespace {

using test::FakeDevice;

std::vector<float> term_of(int rank, std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = std::sin(static_cast<float>(i) + static_cast<float>(rank) * 0.37F);
  return out;
}

std::vector<float> rounded(CommDtype dtype, std::vector<float> numbers) {
  std::vector<std::byte> packed(bytes_of(dtype, numbers.size()));
  pack_rounding(dtype, packed.data(), numbers.data(), numbers.size());
  return numbers;
}

// The owner of a number adds its own term as it is, and those of the others as they came.
std::vector<float> expected_sum(CommDtype dtype, int ranks, std::size_t count, std::size_t share) {
  std::vector<float> sum(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<float> exact = term_of(rank, count), sent = rounded(dtype, exact);
    for (std::size_t i = 0; i < count; ++i)
      sum[i] += i / share == static_cast<std::size_t>(rank) ? exact[i] : sent[i];
  }
  return rounded(dtype, sum);
}

}  // namespace

TEST_CASE("each term is rounded once and the sum once, and all ranks hold the same bits") {
  for (const CommDtype dtype : {CommDtype::bf16, CommDtype::f16}) {
    constexpr std::size_t count = 20'001, share = 6672;  // a third, and up to the next eight
    std::atomic<int> right{0};
    test::on_ranks(3, [&](Communicator& world) {
      const auto made = make_compressed_allreduce(world, std::make_shared<FakeDevice>(), dtype, FAKE_NCCL);
      REQUIRE(made);
      CHECK(made->description == fmt::format("NCCL 2.28.3 as {}", name_of(dtype)));
      std::vector<float> numbers = term_of(world.rank(), count);
      for (int step = 0; step < 2; ++step) {  // the second as a graph's replay has it: nothing is new
        numbers = term_of(world.rank(), count);
        REQUIRE(made->sum->sum(numbers.data(), count, nullptr));
      }
      if (numbers == expected_sum(dtype, 3, count, share)) ++right;
      REQUIRE(world.barrier());
    });
    CHECK(right == 3);
  }
}

TEST_CASE("every rank sends each other rank its share and gets its own from it, all at once") {
  test::on_ranks(3, [&](Communicator& world) {
    const auto made =
        make_compressed_allreduce(world, std::make_shared<FakeDevice>(), CommDtype::bf16, FAKE_NCCL);
    REQUIRE(made);
    std::vector<float> numbers(20'001);
    (void)test::nccl_log();
    REQUIRE(made->sum->sum(numbers.data(), numbers.size(), nullptr));
    if (world.rank() == 2)  // whose share is what is left
      CHECK(test::nccl_log() ==
            "pack 20001, group, send 13344 to 0, receive 13344 from 1, send 13344 to 1, receive 13344 from "
            "0, end, sum 6657, all-gather 13344, unpack 20001");
    REQUIRE(world.barrier());
  });
}

TEST_CASE("what is small travels as f32, and what is large in pieces") {
  test::on_ranks(2, [&](Communicator& world) {
    const auto made =
        make_compressed_allreduce(world, std::make_shared<FakeDevice>(), CommDtype::bf16, FAKE_NCCL);
    REQUIRE(made);
    std::vector<float> numbers((std::size_t{16} << 20) + 10, 1);
    (void)test::nccl_log();
    REQUIRE(made->sum->sum(numbers.data(), 100, nullptr));
    CHECK(test::nccl_log() == "all-reduce 100");
    REQUIRE(made->sum->sum(numbers.data(), numbers.size(), nullptr));
    const std::string log = test::nccl_log();
    CHECK(log.starts_with("pack 16777216, "));
    CHECK(log.ends_with(", unpack 16777216, all-reduce 10"));
    CHECK(numbers.back() == 2);
    CHECK(numbers[1000] == 2);
    REQUIRE(world.barrier());
  });
}

TEST_CASE("what NCCL finds wrong ends a sum in a 16-bit dtype too") {
  test::on_ranks(2, [](Communicator& world) {
    const auto made =
        make_compressed_allreduce(world, std::make_shared<FakeDevice>(), CommDtype::f16, FAKE_NCCL);
    REQUIRE(made);
    CHECK(made->sum->check());
    REQUIRE(world.barrier());
    (*test::from_fake_nccl<void(int)>("fake_nccl_fail"))(6);
    CHECK(test::await_failure(*made->sum).kind == ErrorKind::lost);
    CHECK(!made->sum->sum(nullptr, 0, nullptr));
    REQUIRE(world.barrier());
  });
  (*test::from_fake_nccl<void(int)>("fake_nccl_fail"))(0);
}

}  // namespace dlrun::runtime
