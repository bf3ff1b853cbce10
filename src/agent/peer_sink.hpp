// PeerSink: where other nodes try to reach this one: a TCP port whose callers may send what they like, which
// is thrown away. A caller says the token in its first line, else it is dropped. With "ring N" behind the
// token it is the node before this one in that ring, and its connection is given to whoever runs the ring.
// The port is closed with the value, or earlier with its loop.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "src/base/types.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/listener.hpp"

namespace dlrun::agent {

class PeerSink {
 public:
  using RingCaller = std::function<void(int ring, UniqueFd)>;
  static Result<std::unique_ptr<PeerSink>> open(EventLoop& loop, std::string token, RingCaller ring_caller);
  ~PeerSink();
  Port port() const { return port_; }

 private:
  struct Caller {
    UniqueFd fd;
    std::string line = {};  // until it is whole
    bool proven = false;
  };
  using Place = std::list<Caller>::iterator;

  PeerSink(EventLoop& loop, std::string token, RingCaller ring_caller, UniqueFd socket);
  void add(UniqueFd fd);
  void read_from(Place caller);
  bool is_welcome(Place caller, std::string_view bytes);
  void drop(Place caller);

  EventLoop& loop_;
  const std::string token_;
  Port port_;
  const RingCaller ring_caller_;
  std::list<Caller> callers_;
  std::string buffer_;
  Listener listener_;
};

}  // namespace dlrun::agent
