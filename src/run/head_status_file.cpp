#include "src/run/head_status_file.hpp"

#include <csignal>

#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/thread_without_signals.hpp"
#include "src/record/openmetrics.hpp"
#include "src/record/stacks_request.hpp"

namespace dlrun::job {
namespace {

// Longer than the time in which a second SIGTERM counts as the same request (stop_signals.cpp).
constexpr Seconds kLookInterval{1.1};

}  // namespace

HeadStatusFile::HeadStatusFile(std::filesystem::path run_directory, const std::filesystem::path& metrics_file,
                               HeadStatus known, OnStop on_stop)
    : directory_(std::move(run_directory)),
      metrics_file_(metrics_file.empty() ? metrics_file : directory_ / metrics_file),
      on_stop_(std::move(on_stop)),
      live_(std::move(known)),
      last_stacks_request_(requested_stacks(directory_)),
      thread_(thread_without_signals([this] { work(); })) {}

HeadStatusFile::~HeadStatusFile() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void HeadStatusFile::change(const std::function<void(LiveStatus&)>& how) {
  const std::lock_guard lock(mutex_);
  how(live_);
}

std::string HeadStatusFile::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void HeadStatusFile::work() {
  Ticks written{};
  for (;;) {
    if (std::chrono::steady_clock::now() - written >= kHeadStatusInterval) {
      write();
      written = std::chrono::steady_clock::now();
    }
    pass_stop_on();
    find_stacks_request();
    find_hosts_request();
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, kLookInterval, [this] { return end_; })) break;
  }
  write();
}

// The lock is not held while the file system works.
void HeadStatusFile::write() {
  std::unique_lock lock(mutex_);
  const HeadStatus status = live_.at(SystemClock().now(), std::chrono::steady_clock::now());
  lock.unlock();
  auto written = replace_file(directory_ / "status.json", to_pretty_text(to_json(status)), Durability::none);
  if (written && !metrics_file_.empty())
    written = replace_file(metrics_file_, openmetrics_text(status), Durability::none);
  lock.lock();
  if (!written && problem_.empty()) problem_ = written.error().text();
}

void HeadStatusFile::pass_stop_on() {
  const RunStop asked = requested_stop(directory_);
  if (asked == RunStop::none || (asked == RunStop::save && passed_on_ == RunStop::save)) return;
  passed_on_ = asked;
  on_stop_();
}

// Each has an id of its own: the file of one that was answered stays.
void HeadStatusFile::find_stacks_request() {
  const std::string asked = requested_stacks(directory_);
  if (asked.empty() || asked == last_stacks_request_) return;
  last_stacks_request_ = asked;
  const std::lock_guard lock(mutex_);
  stacks_asked_ = asked;
}

std::optional<std::string> HeadStatusFile::take_stacks_request() {
  const std::lock_guard lock(mutex_);
  return std::exchange(stacks_asked_, std::nullopt);
}

void HeadStatusFile::find_hosts_request() {
  auto asked = requested_hosts(directory_);
  if (!asked || asked->id == last_hosts_request_) return;
  last_hosts_request_ = asked->id;
  const std::lock_guard lock(mutex_);
  hosts_asked_ = std::move(asked);
}

std::optional<HostsRequest> HeadStatusFile::take_hosts_request() {
  const std::lock_guard lock(mutex_);
  return std::exchange(hosts_asked_, std::nullopt);
}

void stop_this_run() {
  ::kill(::getpid(), SIGTERM);
}

}  // namespace dlrun::job
