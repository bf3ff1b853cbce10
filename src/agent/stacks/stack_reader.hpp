// StackReader: has the stacks of this node's ranks read by a process of its own (read_stacks.hpp), which is
// ended when its time is over. Ranks that it had not read by then are told with what the kernel tells of
// them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/unique_fd.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/stacks.hpp"

namespace dlrun::agent {

class StackReader {
 public:
  static constexpr Seconds kLimit{10};
  struct RankToRead {
    Rank rank;
    pid_t pid;  // its first process
  };
  using Done = std::function<void(std::vector<RankStack>)>;

  /// `folder`: of the sockets. `done` is called once, from the loop or from here.
  static std::unique_ptr<StackReader> start(EventLoop& loop, std::vector<RankToRead> ranks,
                                            const std::string& folder, Done done);
  ~StackReader();
  StackReader(const StackReader&) = delete;
  StackReader& operator=(const StackReader&) = delete;

  /// The process, while there is one.
  std::optional<pid_t> child() const { return pid_ > 0 ? std::optional(pid_) : std::nullopt; }

 private:
  StackReader(EventLoop& loop, std::vector<RankToRead> ranks, Done done)
      : loop_(loop), ranks_(std::move(ranks)), done_(std::move(done)) {}
  Result<void> begin(const std::string& folder);
  void read();
  void finish(const std::string& why_not);
  void end();

  EventLoop& loop_;
  std::vector<RankToRead> ranks_;
  Done done_;
  pid_t pid_ = 0;
  UniqueFd out_;
  std::string text_;
  std::optional<EventLoop::TimerId> limit_;
};

}  // namespace dlrun::agent
