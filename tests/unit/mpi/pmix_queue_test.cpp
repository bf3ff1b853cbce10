// Calls that one thread queues and another runs.
#include "src/agent/pmi/pmix_queue.hpp"

#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>

namespace dlrun::pmix {

namespace {

bool readable(const CallQueue& queue) {
  pollfd polled{queue.fd(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

}  // namespace

TEST_CASE("the descriptor tells that there is something to run, which runs in order and once") {
  CallQueue queue;
  CHECK(!readable(queue));
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) queue.push([&ran, i] { ran.push_back(i); });
  CHECK(readable(queue));
  queue.run_all();
  CHECK(ran == std::vector<int>{0, 1, 2});
  CHECK(!readable(queue));
  queue.run_all();
  CHECK(ran.size() == 3);
}

TEST_CASE("a call may run the queue itself: what came later still comes in order") {
  CallQueue queue;
  std::vector<int> ran;
  queue.push([&] {
    ran.push_back(1);
    queue.run_all();
    ran.push_back(3);
  });
  queue.push([&] { ran.push_back(2); });
  queue.run_all();
  CHECK(ran == std::vector<int>{1, 2, 3});
}

TEST_CASE("nothing that another thread queues is lost") {
  CallQueue queue;
  constexpr int calls = 20'000;
  int ran = 0;
  std::thread other([&] {
    for (int i = 0; i < calls; ++i) queue.push([&ran] { ++ran; });
  });
  while (ran < calls) {
    pollfd polled{queue.fd(), POLLIN, 0};
    ::poll(&polled, 1, -1);
    queue.run_all();
  }
  other.join();
  CHECK(ran == calls);
}

}  // namespace dlrun::pmix
