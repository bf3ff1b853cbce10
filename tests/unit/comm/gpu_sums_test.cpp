// How the GPUs of a world come to sum: in the first one as all can, later as those do that were in it.
#include "runtime/comm/allreduce/gpu_sums.hpp"

#include <mutex>

#include <doctest/doctest.h>

#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {
namespace {

struct Rank {
  GpuSums before;
  bool has_nccl = true;
};
constexpr Rank kNew{GpuSums::unconnected}, kNewWithout{GpuSums::unconnected, false};
constexpr Rank kOnDevice{GpuSums::on_device}, kOnDeviceWithout{GpuSums::on_device, false};
constexpr Rank kThroughHost{GpuSums::through_host, false};

std::vector<Result<AgreedSums>> agreed(const std::vector<Rank>& world) {
  std::vector<Result<AgreedSums>> out(world.size());
  test::on_ranks(static_cast<int>(world.size()), [&](Communicator& comm) {
    const auto number = static_cast<std::size_t>(comm.rank());
    const Rank& own = world[number];
    out[number] =
        agree_on_sums(comm, own.before,
                      own.has_nccl ? Result<void>{} : fail(ErrorKind::unavailable, "libnccl is not here"));
  });
  return out;
}

// Of all ranks alike.
void check_all(const std::vector<Rank>& world, GpuSums how, bool some_join = false) {
  for (const Result<AgreedSums>& one : agreed(world)) {
    REQUIRE(one);
    CHECK(one->how == how);
    CHECK(one->some_join == some_join);
  }
}

}  // namespace

TEST_CASE("the first world sums on the devices where all ranks have NCCL") {
  check_all({kNew, kNew, kNew}, GpuSums::on_device);
  check_all({kNew, kNewWithout}, GpuSums::through_host);
  const auto both = agreed({kNew, kNewWithout});
  CHECK(both[0]->why == "rank 1 cannot use NCCL; its log says why");
  CHECK(both[1]->why == "libnccl is not here");
}

TEST_CASE("a rank alone needs no NCCL") {
  check_all({kNewWithout}, GpuSums::on_device);
  check_all({kOnDeviceWithout}, GpuSums::on_device);
}

TEST_CASE("ranks that join sum as the others do") {
  check_all({kOnDevice, kNew, kOnDevice}, GpuSums::on_device, true);
  check_all({kThroughHost, kNew}, GpuSums::through_host, true);
  check_all({kThroughHost, kNewWithout, kThroughHost}, GpuSums::through_host, true);
  check_all({kOnDevice, kOnDevice}, GpuSums::on_device);
}

TEST_CASE("where ranks join and NCCL is missing, those that join fail, and the others go on without them") {
  for (const std::vector<Rank>& world : {std::vector{kOnDevice, kNewWithout}, {kOnDeviceWithout, kNew}}) {
    const auto both = agreed(world);
    REQUIRE(!both[0]);
    CHECK(both[0].error().kind == ErrorKind::lost);
    REQUIRE(!both[1]);
    CHECK(both[1].error().kind == ErrorKind::unavailable);
    const std::string& why = both[1].error().what;
    CHECK(why == (world[1].has_nccl ? "the GPUs of this run are summed by NCCL, and rank 0 has none"
                                    : "the GPUs of this run are summed by NCCL, and libnccl is not here"));
  }
}

}  // namespace dlrun::runtime
