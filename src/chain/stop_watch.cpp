#include "src/chain/stop_watch.hpp"

#include <csignal>

#include <unistd.h>

#include "src/base/thread_without_signals.hpp"

namespace dlrun::job {

StopWatcher::StopWatcher(ChainFolder folder, Seconds interval)
    : folder_(std::move(folder)), interval_(interval), thread_(thread_without_signals([this] { watch(); })) {}

StopWatcher::~StopWatcher() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void StopWatcher::watch() {
  std::unique_lock lock(mutex_);
  while (!end_) {
    lock.unlock();
    const bool requested = folder_.stop_requested() == StopRequest::stop;
    lock.lock();
    if (requested && !end_) return void(::kill(::getpid(), SIGTERM));
    ended_.wait_for(lock, interval_, [this] { return end_; });
  }
}

}  // namespace dlrun::job
