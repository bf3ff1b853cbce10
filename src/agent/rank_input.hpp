// RankInput: what dlrun's standard input has, on its way into a rank's. The rank may read slowly: what it has
// not taken waits here, and whoever sends hears how much was taken. A rank that closes its input ends it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/base/unique_fd.hpp"
#include "src/process/event_loop.hpp"

namespace dlrun::agent {

class RankInput {
 public:
  struct Callbacks {
    std::function<void(std::size_t bytes)> taken;
    std::function<void()> closed;  // by the rank; once
  };
  // `pipe`: its end that is written, which does not block.
  RankInput(EventLoop& loop, UniqueFd pipe, Callbacks callbacks);
  ~RankInput();
  RankInput(const RankInput&) = delete;
  RankInput& operator=(const RankInput&) = delete;

  void give(std::string_view bytes);
  // Nothing more comes: the rank reads the end once it has taken the rest.
  void end();

 private:
  void write_ready();
  void close();

  EventLoop& loop_;
  UniqueFd pipe_;
  Callbacks callbacks_;
  std::string waiting_;
  bool ended_ = false;
};

}  // namespace dlrun::agent
