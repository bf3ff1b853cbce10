#include "src/process/file_writer.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "src/base/file.hpp"
#include "src/process/appended_file.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/writer_watch.hpp"

using namespace dlrun;

namespace {

// A file system that takes nothing until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

struct Pipe {
  UniqueFd read, write;
};

Pipe make_pipe() {
  int fds[2];
  REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void drain(FileWriter& writer) {
  constexpr Seconds forever{1e6};
  CHECK(writer.drain(forever));
}

}  // namespace

TEST_CASE("work is done all the same where the system gives no thread") {
  pthread_attr_t usual, too_large;
  REQUIRE(::pthread_getattr_default_np(&usual) == 0);
  REQUIRE(::pthread_attr_init(&too_large) == 0);
  REQUIRE(::pthread_attr_setstacksize(&too_large, std::size_t{1} << 47) == 0);
  REQUIRE(::pthread_setattr_default_np(&too_large) == 0);
  FileWriter writer;
  bool done = false, heard = false;
  writer.run(
      [&]() -> Result<void> {
        done = true;
        return {};
      },
      [&](const Result<void>&) { heard = true; });
  CHECK(done);
  CHECK_FALSE(heard);
  REQUIRE(::pthread_setattr_default_np(&usual) == 0);
  drain(writer);
  CHECK(heard);
}

TEST_CASE("work is done in order beside its owner, who hears of it when it collects") {
  Gate gate;
  FileWriter writer;
  std::string done;
  writer.run(
      [&gate]() -> Result<void> {
        gate.pass();
        return {};
      },
      [&](const Result<void>& result) { done += result ? "a" : "!"; });
  writer.run([]() -> Result<void> { return fail(ErrorKind::io, "no space left on device"); },
             [&](const Result<void>& result) { done += result ? "!" : "b"; });
  CHECK(!writer.idle());
  CHECK(!writer.drain(Seconds(0.01)));
  CHECK(done.empty());
  gate.open();
  drain(writer);
  CHECK(done == "ab");
  CHECK(writer.busy_for(std::chrono::steady_clock::now()) == Seconds(0));
}

TEST_CASE("a file that takes no writes slows its source down and loses nothing") {
  Gate gate;
  Pipe pipe = make_pipe();
  int drained = 0;
  std::string got;
  std::thread reading;
  FileWriter writer;
  writer.run([&gate]() -> Result<void> {
    gate.pass();
    return {};
  });
  std::string sent;
  const auto send = [&sent](AppendedFile& file, const std::string& line) {
    sent += line;
    file.append(line);
  };
  {
    AppendedFile file(writer, std::move(pipe.write), "log", {.failed = {}, .drained = [&] { ++drained; }});
    while (!file.full()) send(file, "line " + std::to_string(sent.size()) + "\n");
    CHECK(drained == 0);
    gate.open();
    std::thread reader([&] { got = read_all(pipe.read.get(), "pipe").value(); });
    drain(writer);
    CHECK(drained == 1);
    CHECK(!file.full());
    send(file, "written though its file is left at once\n");
    send(file, "and this, too\n");
    reading = std::move(reader);
  }
  drain(writer);
  reading.join();
  CHECK(got == sent);
}

TEST_CASE("the first write that fails is told once, and nothing is written behind it") {
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  FileWriter writer;
  std::vector<std::string> errors;
  AppendedFile file(writer, std::move(full), "run/logs/rank-0.log",
                    {.failed = [&](const Error& error) { errors.push_back(error.what); }, .drained = {}});
  file.append("one\n");
  drain(writer);
  file.append("two\n");
  drain(writer);
  CHECK(errors == std::vector<std::string>{"cannot write run/logs/rank-0.log: No space left on device"});
}

TEST_CASE("a stall is told once, and so is its end; what waits for the files goes on then") {
  Gate gate;
  EventLoop loop;
  FileWriter writer;
  std::string told;
  WriterWatch watch(loop, writer,
                    {.stalled =
                         [&](Seconds so_far) {
                           told += so_far >= Seconds(0.02) ? "stalled " : "too early ";
                           loop.after(Seconds(0.05), [&] { gate.open(); });
                         },
                     .resumed = [&](Seconds) { told += "resumed "; }},
                    Seconds(0.02));
  writer.run([&gate]() -> Result<void> {
    gate.pass();
    return {};
  });
  watch.when_idle([&] {
    told += "idle";
    loop.stop();
  });
  REQUIRE(loop.run().has_value());
  CHECK(told == "stalled resumed idle");
}
