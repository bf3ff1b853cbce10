#include "src/run/head_status_file.hpp"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/thread_without_signals.hpp"
#include "src/process/stop_signals.hpp"
#include "src/record/openmetrics.hpp"
#include "src/record/stacks_request.hpp"

namespace dlrun::job {
namespace {

// Longer than the time in which a second SIGTERM counts as the same request (stop_signals.cpp).
constexpr Seconds kLookInterval{1.1};

// On a full disk no new file can be made, but the blocks that a file has are still its own.
Result<void> overwrite(const std::filesystem::path& path, std::string_view text) {
  constexpr std::uint64_t block = 512;  // of st_blocks, whatever the file system's are
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_blocks) * block < text.size())
    return fail(ErrorKind::io, "no room in {}", path.string());
  TRY(write_all(fd.get(), text, path));
  if (::ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0)
    return fail(ErrorKind::io, "cannot write {}: {}", path.string(), system_reason(errno));
  return {};
}

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
  const bool is_last = end_;
  lock.unlock();
  const std::string text = to_pretty_text(to_json(status));
  auto written = replace_file(directory_ / "status.json", text, Durability::none);
  if (!written && is_last)
    (void)overwrite(directory_ / "status.json", text);  // else a reader takes us for lost
  if (written && !metrics_file_.empty())
    written = replace_file(metrics_file_, openmetrics_text(status), Durability::none);
  lock.lock();
  if (!written && problem_.empty()) problem_ = written.error().text();
}

void HeadStatusFile::pass_stop_on() {
  const RunStop asked = requested_stop(directory_);
  if (asked == RunStop::none || (asked == RunStop::save && passed_on_ == RunStop::save)) return;
  passed_on_ = asked;
  on_stop_(asked);
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

// A second signal is what ends ranks at once. One that is still pending would be the same one; and as from a
// key it counts however soon it comes, so that what is to end at once has no time to save.
void stop_this_run(RunStop asked) {
  pass_on(::getpid(), {SIGTERM, SignalSender::own_user});
  if (asked != RunStop::now) return;
  constexpr int kMaxLooks = 1000;
  for (int i = 0; i < kMaxLooks && stop_signal_is_held(); ++i) std::this_thread::sleep_for(Milliseconds(1));
  pass_on(::getpid(), {SIGTERM, SignalSender::kernel});
}

}  // namespace dlrun::job
