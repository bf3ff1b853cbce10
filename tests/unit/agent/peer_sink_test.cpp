#include "src/agent/peer_sink.hpp"

#include <atomic>
#include <functional>
#include <thread>

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include "src/health/peer_transfer.hpp"

using namespace dlrun;
using health::Peer;
using health::Transfer;

namespace {

std::vector<int> rings;  // that were called, in the last test

// What `work` gives, which runs beside a loop with a sink.
std::vector<Transfer> beside_sink(const std::function<std::vector<Transfer>(int port)>& work) {
  EventLoop loop;
  rings.clear();
  const auto sink = agent::PeerSink::open(loop, "ab12", [](int ring, UniqueFd fd) {
    rings.push_back(ring);
    (void)!::write(fd.get(), "+", 1);
  });
  REQUIRE(sink);
  std::vector<Transfer> out;
  std::atomic<bool> over = false;
  std::thread thread([&, port = static_cast<int>((*sink)->port().get())] { out = work(port), over = true; });
  std::function<void()> poll = [&] { over ? loop.stop() : void(loop.after(Seconds(0.005), poll)); };
  poll();
  REQUIRE(loop.run());
  thread.join();
  return out;
}

}  // namespace

TEST_CASE("bytes that another node sends are taken, and counted as it acknowledges them") {
  const auto transfers = beside_sink([](int port) {
    const std::vector<Peer> peers{
        {{"127.0.0.1"}, port}, {{"fe80::1", "127.0.0.1"}, port}, {{"127.0.0.1"}, 1}};
    return health::transfer_to_all(peers, "ab12", Seconds(0.05));
  });
  REQUIRE(transfers.size() == 3);
  for (const Transfer& transfer : {transfers[0], transfers[1]}) {
    CHECK(transfer.problem.empty());
    CHECK(transfer.bytes > 0);
    CHECK(transfer.took >= Seconds(0.05));
  }
  CHECK(transfers[2].problem == "Connection refused");
}

TEST_CASE("a node is reached without sending anything") {
  const auto transfers = beside_sink([](int port) {
    return health::transfer_to_all({{{"127.0.0.1"}, port}}, "ab12", Seconds(0));
  });
  CHECK(transfers[0].problem.empty());
  CHECK(transfers[0].bytes == 0);
}

TEST_CASE("a caller without the token is dropped before it has sent much") {
  constexpr Seconds kWouldSend{120};  // far more than a busy machine needs to drop a caller
  const auto transfers = beside_sink([&](int port) {
    return health::transfer_to_all({{{"127.0.0.1"}, port}}, "another", kWouldSend);
  });
  CHECK(transfers[0].took < kWouldSend);
}

TEST_CASE("the node before this one in a ring is given away with its connection") {
  std::string answers;
  beside_sink([&](int port) {
    for (const char* line : {"ab12 ring 7", "ab12 ring x", "ab1 ring 7", "ab12 ring 8"}) {
      const auto fd = health::connect_to_peer({{"127.0.0.1"}, port}, line);
      char answer = '.';
      pollfd polled{fd->get(), POLLIN, 0};
      ::poll(&polled, 1, 5000);
      (void)!::read(fd->get(), &answer, 1);
      answers += answer;
    }
    return std::vector<Transfer>();
  });
  CHECK(answers == "+..+");
  CHECK(rings == std::vector<int>{7, 8});
}
