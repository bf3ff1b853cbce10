#include "src/agent/stage_in/block_queue.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kPause{0.1};

}  // namespace

bool BlockQueue::push(Block block) {
  std::unique_lock lock(mutex_);
  while (blocks_.size() >= kMaxBlocks && !control_.stopped()) changed_.wait_for(lock, kPause);
  if (control_.stopped()) return false;
  blocks_.push_back(std::move(block));
  changed_.notify_all();
  return true;
}

void BlockQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Block BlockQueue::pop() {
  std::unique_lock lock(mutex_);
  while (blocks_.empty() && !closed_ && !control_.stopped()) changed_.wait_for(lock, kPause);
  if (blocks_.empty() || control_.stopped()) return {};
  Block out = std::move(blocks_.front());
  blocks_.pop_front();
  changed_.notify_all();
  return out;
}

}  // namespace dlrun::agent
