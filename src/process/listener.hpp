// Listener: takes connections of a listening socket in an event loop. Where the process has no descriptor to
// spare, its owner may drop a connection that nobody needs; else the socket rests for a moment, since it
// stays readable and the loop would go round without end.
#pragma once

#include <functional>
#include <optional>

#include "src/base/unique_fd.hpp"
#include "src/process/event_loop.hpp"

namespace dlrun {

class Listener {
 public:
  static constexpr Seconds kRest{0.1};
  struct Callbacks {
    std::function<void(UniqueFd connection)> connected;  // close-on-exec, does not block
    std::function<bool()> free_a_place;                  // drops a connection; false: there is none to drop
  };
  Listener(EventLoop& loop, UniqueFd socket, Callbacks callbacks);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Takes the connections that wait already, without a turn of the loop.
  void take_waiting();

 private:
  void watch();
  bool take_one();
  void rest();

  EventLoop& loop_;
  UniqueFd socket_;
  Callbacks callbacks_;
  std::optional<EventLoop::TimerId> resting_;
};

}  // namespace dlrun
