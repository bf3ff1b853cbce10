#include "src/process/event_loop.hpp"

#include <csignal>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
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

namespace {

struct Pair {
  UniqueFd read, write;
};
Pair make_pair_of_ends() {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

TEST_CASE("a regular file, which epoll refuses, is ready at once, beside others") {
  EventLoop loop;
  Pair pipe = make_pair_of_ends();
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  int of_file = 0, of_pipe = 0;
  loop.watch(file.get(), POLLIN, [&](short ready) { of_file += (ready & POLLIN) != 0; });
  loop.watch(pipe.read.get(), POLLIN, [&](short) { ++of_pipe; });
  REQUIRE(loop.turn().has_value());
  CHECK(of_file == 1);
  CHECK(of_pipe == 0);
  REQUIRE(::write(pipe.write.get(), "x", 1) == 1);
  REQUIRE(loop.turn().has_value());
  CHECK(of_file == 2);
  CHECK(of_pipe == 1);
  loop.unwatch(file.get());
  REQUIRE(loop.turn().has_value());
  CHECK(of_file == 2);
  CHECK(of_pipe == 2);
}

TEST_CASE("a descriptor that is closed and comes anew under the same number is watched") {
  EventLoop loop;
  Pair first = make_pair_of_ends(), second = make_pair_of_ends();
  const int number = first.read.get();
  loop.watch(number, POLLIN, [](short) {});
  REQUIRE(::dup3(second.read.get(), number, O_CLOEXEC) == number);  // closes the first
  int calls = 0;
  loop.watch(number, POLLIN, [&](short) { ++calls; });
  REQUIRE(::write(second.write.get(), "x", 1) == 1);
  REQUIRE(loop.turn().has_value());
  CHECK(calls == 1);
}

TEST_CASE("a watch that a handler makes is not told of what was ready before it") {
  EventLoop loop;
  Pair first = make_pair_of_ends(), second = make_pair_of_ends();
  const bool in_order = first.read.get() < second.read.get();
  const int early = in_order ? first.read.get() : second.read.get();
  const int late = in_order ? second.read.get() : first.read.get();
  int old_calls = 0, new_calls = 0;
  loop.watch(early, POLLIN, [&](short) { loop.watch(late, POLLIN, [&](short) { ++new_calls; }); });
  loop.watch(late, POLLIN, [&](short) { ++old_calls; });
  REQUIRE(::write(first.write.get(), "x", 1) == 1);
  REQUIRE(::write(second.write.get(), "x", 1) == 1);
  REQUIRE(loop.turn().has_value());
  CHECK(old_calls == 0);  // lower numbers come first
  CHECK(new_calls == 0);
  loop.unwatch(early);
  REQUIRE(loop.turn().has_value());
  CHECK(new_calls == 1);
}

TEST_CASE("a change of the events of a descriptor keeps its handler; a hang-up comes without one") {
  EventLoop loop;
  Pair pipe = make_pair_of_ends();
  short seen = 0;
  loop.watch(pipe.read.get(), POLLIN, [&](short ready) { seen = ready; });
  loop.change(pipe.read.get(), 0);
  REQUIRE(::write(pipe.write.get(), "x", 1) == 1);
  loop.after(Seconds(0), [] {});
  REQUIRE(loop.turn().has_value());
  CHECK(seen == 0);
  loop.change(pipe.read.get(), POLLIN);
  REQUIRE(loop.turn().has_value());
  CHECK(seen == POLLIN);
  loop.change(pipe.read.get(), 0);
  pipe.write.reset();
  REQUIRE(loop.turn().has_value());
  CHECK((seen & POLLHUP) != 0);
}

TEST_CASE("what a forked child unwatches is watched on in its parent") {
  EventLoop loop;
  Pair pipe = make_pair_of_ends();
  bool seen = false;
  loop.watch(pipe.read.get(), POLLIN, [&](short) { seen = true; });
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    loop.unwatch(pipe.read.get());
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  REQUIRE(::write(pipe.write.get(), "x", 1) == 1);
  loop.after(Seconds(5), [&] { loop.stop(); });  // not to hang where this fails
  REQUIRE(loop.turn().has_value());
  CHECK(seen);
}
