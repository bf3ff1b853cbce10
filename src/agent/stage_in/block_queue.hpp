// BlockQueue: the bytes of a stream between two threads, in blocks that several queues share. It is bounded,
// so that the fastest thread waits for the slowest one. Who waits in it looks at the control, and goes where
// the transfer was stopped.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "src/agent/stage_in/stage_control.hpp"

namespace dlrun::agent {

using Block = std::shared_ptr<const std::string>;

class BlockQueue {
 public:
  static constexpr std::size_t kBlock = 1 << 20, kMaxBlocks = 16;

  explicit BlockQueue(const StageControl& control) : control_(control) {}

  /// Waits for room. False: the transfer was stopped.
  bool push(Block block);
  /// Nothing follows.
  void close();
  /// Waits for a block; empty at the end, or where the transfer was stopped.
  Block pop();

 private:
  const StageControl& control_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> blocks_;
  bool closed_ = false;
};

}  // namespace dlrun::agent
