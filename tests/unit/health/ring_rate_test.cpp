#include "src/health/ring_rate.hpp"

#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "src/base/unique_fd.hpp"

using namespace dlrun;
using namespace dlrun::health;

namespace {

// A ring of threads; node `absent` closes its sockets at once.
std::vector<RingRate> ring_of(int size, RingPlace place, int absent = -1) {
  std::vector<UniqueFd> from(static_cast<std::size_t>(size)), to(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < to.size(); ++i) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    to[i].reset(fds[0]), from[(i + 1) % to.size()].reset(fds[1]);
  }
  std::vector<RingRate> out(to.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < to.size(); ++i)
    threads.emplace_back([&, i] {
      RingPlace mine = place;
      mine.place = static_cast<int>(i), mine.size = size;
      if (mine.place != absent) out[i] = ring_rate(from[i].get(), to[i].get(), mine);
      from[i].reset(), to[i].reset();
    });
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace

TEST_CASE("every node adds up the same numbers until the first one ends it") {
  for (const int size : {2, 3, 5}) {
    // What is not over at four times the time is cut off: a busy machine needs some for the last allreduce.
    const auto rates = ring_of(size, {.chunk = 4000, .time = Seconds(0.5)});
    for (const RingRate& rate : rates) {
      CHECK(rate.problem.empty());
      CHECK(rate.bytes > 0);
      CHECK(rate.bytes % (8000 * (size - 1)) == 0);  // whole allreduces
      CHECK(rate.bytes == rates.front().bytes);
      CHECK(rate.took >= Seconds(0));
    }
    CHECK(rates.front().took >= Seconds(0.5));
  }
}

TEST_CASE("a node that is not there ends the ring of the others") {
  const auto rates = ring_of(3, {.chunk = 4000, .time = Seconds(0.01), .begins = Seconds(30)}, 1);
  for (const int node : {0, 2}) {
    CHECK_FALSE(rates[static_cast<std::size_t>(node)].problem.empty());
    CHECK(rates[static_cast<std::size_t>(node)].bytes == 0);
  }
}

TEST_CASE("a ring that does not begin in time says so") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  const UniqueFd one(fds[0]), other(fds[1]);
  CHECK(ring_rate(one.get(), one.get(), {.begins = Seconds(0.02)}).problem == "no answer");
}
