#include "src/run/status_queue.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>

#include <doctest/doctest.h>
#include <poll.h>

using namespace dlrun;
using namespace dlrun::job;

namespace {

// Remembers what was shown, and takes nothing while it is held.
class Reader final : public RunStatus {
 public:
  Result<void> planned(const plan::Plan&) override { return {}; }
  void phase(const std::string&) override {}
  void output(const plan::RankPlan&, OutputStream, std::string_view) override {}
  std::optional<Ticks> lines_due() const override {
    const std::lock_guard lock(mutex_);
    return due_;
  }
  void flush_lines(std::optional<Ticks>) override {
    const std::lock_guard lock(mutex_);
    due_.reset();
    shown_.push_back("flushed");
  }
  void progress(const Json&) override {}
  void problem(const std::string&) override {}
  void note(const std::string& text) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !held_; });
    shown_.push_back(text);
  }
  void rest() override {
    const std::lock_guard lock(mutex_);
    rests_.push_back(shown_.size());
  }
  void stopping() override { release(); }
  void finished(const plan::Plan&, const Outcome&) override {}

  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  void hold_lines_until(Ticks due) {
    const std::lock_guard lock(mutex_);
    due_ = due;
  }
  // How much had been shown at each rest.
  std::vector<std::size_t> rests() const {
    const std::lock_guard lock(mutex_);
    return rests_;
  }
  std::vector<std::string> shown() const {
    const std::lock_guard lock(mutex_);
    return shown_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  std::optional<Ticks> due_;
  std::vector<std::string> shown_;
  std::vector<std::size_t> rests_;
};

StatusQueue::Work say(std::string text) {
  return [text = std::move(text)](RunStatus& status) { status.note(text); };
}

void wait_until_ready(const StatusQueue& queue) {
  pollfd ready{queue.ready_fd(), POLLIN, 0};
  REQUIRE(::poll(&ready, 1, 10'000) == 1);
  queue.take_ready();
}

}  // namespace

TEST_CASE("what is added is shown in its order, and all of it before the end") {
  Reader reader;
  {
    StatusQueue queue(reader);
    for (int i = 0; i < 100; ++i) queue.add(say(std::to_string(i)));
  }
  REQUIRE(reader.shown().size() == 100);
  CHECK(reader.shown().front() == "0");
  CHECK(reader.shown().back() == "99");
}

TEST_CASE("the reader may write what it gathered as soon as nothing more waits") {
  Reader reader;
  reader.hold();
  StatusQueue queue(reader);
  for (const char* text : {"one", "two", "three"}) queue.add(say(text));
  reader.release();
  while (!queue.idle()) wait_until_ready(queue);
  queue.add(say("alone"));
  while (!queue.idle()) wait_until_ready(queue);
  CHECK(reader.rests() == std::vector<std::size_t>{3, 4});
}

TEST_CASE("a reader who takes nothing holds up nobody but the queue, which tells that it is full") {
  Reader reader;
  reader.hold();
  StatusQueue queue(reader);
  for (int i = 0; i < 10; ++i) queue.add(say("line"), StatusQueue::kMaxQueued / 8);
  CHECK(queue.full());
  CHECK_FALSE(queue.idle());
  reader.release();
  while (queue.full()) wait_until_ready(queue);
  while (!queue.idle()) wait_until_ready(queue);
  CHECK(reader.shown().size() == 10);
}

TEST_CASE("a stop is said at once, ahead of all that waits") {
  Reader reader;
  reader.hold();
  StatusQueue queue(reader);
  queue.add(say("one"));
  queue.add(say("two"));
  queue.stopping();
  while (!queue.idle()) wait_until_ready(queue);
  CHECK(reader.shown() == std::vector<std::string>{"one", "two"});
}

TEST_CASE("lines that are held for others are flushed when they are due") {
  Reader reader;
  StatusQueue queue(reader);
  reader.hold_lines_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
  queue.add([](RunStatus&) {});
  for (int tries = 0; tries < 500 && reader.shown().empty(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(reader.shown() == std::vector<std::string>{"flushed"});
}
