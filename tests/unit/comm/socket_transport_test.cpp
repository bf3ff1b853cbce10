// Messages over connections between ranks that are threads here: every sum goes over them, and a peer that is
// gone, or that sends something else than expected, is an Error with its name.
#include "runtime/comm/transport/socket_transport.hpp"

#include <thread>

#include <doctest/doctest.h>

#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/comm/collectives.hpp"
#include "tests/unit/comm/arrays.hpp"
#include "tests/unit/comm/socket_ranks.hpp"

namespace dlrun::runtime {

namespace {

using test::connect_ranks;
using test::Links;
using test::on_socket_ranks;

}  // namespace

TEST_CASE("every sum goes over sockets, with the bits of the same sum on every rank") {
  for (const int ranks : {2, 3, 5})
    for (const std::size_t length : {std::size_t{3}, std::size_t{70'001}, std::size_t{1'000'003}})
      for (const CommDtype dtype : {CommDtype::f32, CommDtype::bf16}) {
        CAPTURE(ranks);
        CAPTURE(length);
        Arrays arrays = random_arrays(ranks, length, 1000);
        std::vector<float> near = sum_in_rank_order(arrays);
        on_socket_ranks(ranks, [&](SocketTransport& link, JobThread&) {
          Scratch scratch;
          CHECK(allreduce_by_size(link, arrays[static_cast<std::size_t>(link.rank())], dtype, scratch));
          CHECK(dissemination_barrier(link));
        });
        for (const auto& array : arrays) CHECK(array == arrays[0]);
        CHECK(arrays[0][length / 2] == doctest::Approx(near[length / 2]).epsilon(0.05));
      }
}

TEST_CASE("large messages cross each other, whoever waits for which first") {
  on_socket_ranks(2, [](SocketTransport& link, JobThread&) {
    const int other = 1 - link.rank();
    std::vector<std::byte> out(5'000'000, std::byte(link.rank() + 1)), in(out.size());
    const auto leaving = link.send_start(out, other);
    REQUIRE(leaving);
    const auto arriving = link.receive_start(in, other);
    REQUIRE(arriving);
    CHECK(link.wait(*leaving));
    CHECK(link.wait(*arriving));
    CHECK(in == std::vector<std::byte>(out.size(), std::byte(other + 1)));
    CHECK(!link.wait(*arriving));  // each ticket is awaited once
  });
}

TEST_CASE("ranks that disagree about a length get an error and not each other's bytes") {
  on_socket_ranks(2, [](SocketTransport& link, JobThread&) {
    std::vector<std::byte> data(link.rank() == 0 ? 100 : 60);
    if (link.rank() == 0) {
      CHECK(link.send_start(data, 1));
      return;
    }
    const auto done = link.wait(*link.receive_start(data, 0));
    REQUIRE(!done);
    CHECK(done.error().kind == ErrorKind::internal);
    CHECK(done.error().what == "rank 0 on here sent 100 bytes; expected 60");
  });
}

TEST_CASE("a peer that is gone is an error with its name") {
  on_socket_ranks(3, [](SocketTransport& link, JobThread&) {
    if (link.rank() == 2) return;  // closes its connections
    std::byte byte{};
    const auto done = link.wait(*link.receive_start({&byte, 1}, 2));
    REQUIRE(!done);
    CHECK(done.error().kind == ErrorKind::lost);
    CHECK(done.error().what == "rank 2 on here is gone: its connection was closed");
  });
}

TEST_CASE("a wait for a silent peer ends when it is given up") {
  std::vector<Links> links = connect_ranks(2);
  JobThread jobs;
  SocketTransport link(0, std::move(links[0]), jobs);
  std::byte byte{};
  jobs.post([&]() -> Result<void> { return link.wait(TRY(link.receive_start({&byte, 1}, 1))); });
  jobs.give_up();
  const auto done = jobs.wait();
  REQUIRE(!done);
  CHECK(done.error().kind == ErrorKind::lost);
}

TEST_CASE("a rank whose connection is closed is lost, which is seen without waiting") {
  std::vector<Links> links = connect_ranks(2);
  const JobThread jobs;
  const SocketTransport link(0, std::move(links[0]), jobs);
  CHECK_FALSE(link.lost(0));
  CHECK_FALSE(link.lost(1));
  links[1].clear();
  CHECK(link.lost(1).value().what == "rank 1 on here is gone: its connection was closed");
}

}  // namespace dlrun::runtime
