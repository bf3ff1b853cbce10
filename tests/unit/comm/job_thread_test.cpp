// Jobs in the order of their posting, on one thread that is not ours; errors once; an end that waits for
// none.
#include "runtime/comm/job_thread.hpp"

#include <vector>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::runtime;

TEST_CASE("jobs run in order, on one other thread, and wait() sees them done") {
  JobThread thread;
  std::vector<int> order;
  std::vector<std::thread::id> where;
  for (int i = 0; i < 100; ++i)
    thread.post([&, i]() -> Result<void> {
      order.push_back(i);
      where.push_back(std::this_thread::get_id());
      return {};
    });
  CHECK(thread.wait());
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  CHECK(where[0] != std::this_thread::get_id());
  CHECK(where[0] == where[99]);
}

TEST_CASE("the poster goes on while a job runs, and the job sees when it is waited for") {
  JobThread thread;
  std::atomic<bool> go = false;
  bool was_awaited = false;
  thread.post([&]() -> Result<void> {
    while (!go) std::this_thread::yield();  // ends only because post() returned
    while (!thread.awaited()) std::this_thread::yield();
    was_awaited = true;
    return {};
  });
  go = true;
  CHECK(thread.wait());
  CHECK(was_awaited);
  CHECK_FALSE(thread.awaited());
}

TEST_CASE("after an error no further job runs until it was told, once") {
  JobThread thread;
  int ran = 0;
  thread.post([]() -> Result<void> { return fail(ErrorKind::lost, "gone"); });
  thread.post([&]() -> Result<void> {
    ++ran;
    return {};
  });
  const auto outcome = thread.wait();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().what == "gone");
  CHECK(ran == 0);
  CHECK(thread.wait());
}

TEST_CASE("a job that polls ends when its thread is given up") {
  std::atomic<bool> began = false, ended = false;
  {
    JobThread thread;
    thread.post([&]() -> Result<void> {
      began = true;
      while (!thread.abandoned()) std::this_thread::yield();
      ended = true;
      return {};
    });
    while (!began) std::this_thread::yield();
  }
  CHECK(ended);
}

TEST_CASE("whoever gives up ends the job that waits, and none is run after it") {
  JobThread thread;
  std::atomic<bool> runs = false;
  bool later = false;
  thread.post([&]() -> Result<void> {
    runs = true;
    while (!thread.abandoned()) std::this_thread::yield();
    return fail(ErrorKind::lost, "nobody answers");
  });
  while (!runs) std::this_thread::yield();
  thread.give_up();
  CHECK(thread.wait().error().what == "nobody answers");
  const auto after = thread.run([&]() -> Result<void> {
    later = true;
    return {};
  });
  REQUIRE(!after);
  CHECK(after.error().what == "this rank has disconnected from its peers");
  CHECK(!later);
}
