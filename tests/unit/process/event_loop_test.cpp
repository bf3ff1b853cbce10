#include "src/process/event_loop.hpp"

#include <csignal>

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

using namespace dlrun;

TEST_CASE("timers run in order of their deadlines; a cancelled one does not") {
  EventLoop loop;
  std::string order;
  loop.after(Seconds(0.02), [&] { order += "c", loop.stop(); });
  loop.after(Seconds(0.0), [&] { order += "a"; });
  const auto cancelled = loop.after(Seconds(0.01), [&] { order += "x"; });
  loop.after(Seconds(0.005), [&] { order += "b", loop.cancel(cancelled); });
  REQUIRE(loop.run().has_value());
  CHECK(order == "abc");
}

TEST_CASE("a stop before the run ends it: what was to be waited for was over already") {
  EventLoop loop;
  loop.stop();
  REQUIRE(loop.run().has_value());
  bool ran = false;
  loop.after(Seconds(0), [&] { ran = true, loop.stop(); });
  REQUIRE(loop.run().has_value());
  CHECK(ran);
}

TEST_CASE("a handler may unwatch itself and others") {
  int a[2], b[2];
  REQUIRE(::pipe(a) == 0);
  REQUIRE(::pipe(b) == 0);
  EventLoop loop;
  int calls = 0;
  const auto both_gone = [&](short) {
    ++calls;
    loop.unwatch(a[0]);
    loop.unwatch(b[0]);
  };
  loop.watch(a[0], POLLIN, both_gone);
  loop.watch(b[0], POLLIN, both_gone);
  REQUIRE(::write(a[1], "x", 1) == 1);
  REQUIRE(::write(b[1], "x", 1) == 1);
  REQUIRE(loop.turn().has_value());
  CHECK(calls == 1);
  for (const int fd : {a[0], a[1], b[0], b[1]}) ::close(fd);
}

TEST_CASE("signals arrive as calls, not as interruptions") {
  EventLoop loop;
  int seen = 0;
  REQUIRE(loop.take_signals({SIGUSR2}, [&](const CaughtSignal& signal) { seen = signal.number, loop.stop(); })
              .has_value());
  ::kill(::getpid(), SIGUSR2);
  REQUIRE(loop.run().has_value());
  CHECK(seen == SIGUSR2);
}
