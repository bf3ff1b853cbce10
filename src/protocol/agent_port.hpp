// AgentPort: accepts the TCP connections of agents: to the head, for launchers that start programs without a
// stream to them, or to the agent above them in the relay tree. It passes on connections that have proved
// their token and silently drops all others: invalid, slow and flooding ones cost a bounded number of
// descriptors and bytes.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "src/base/types.hpp"
#include "src/base/unique_fd.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/listener.hpp"
#include "src/protocol/handshake.hpp"

namespace dlrun {

class AgentPort {
 public:
  using Arrived = std::function<void(const AgentIdentity& card, UniqueFd connection)>;
  // `token` must outlive the port.
  static Result<std::unique_ptr<AgentPort>> open(EventLoop& loop, const Token& token, Arrived arrived);
  ~AgentPort();

  Port port() const { return port_; }

 private:
  struct Caller {
    UniqueFd fd;
    HeadHandshake handshake;
    std::string line = {};
    EventLoop::TimerId deadline = {};
  };
  using Place = std::list<Caller>::iterator;

  AgentPort(EventLoop& loop, const Token& token, Arrived arrived, UniqueFd listener, Port port);
  void add(UniqueFd fd);
  void read_from(Place caller);
  void finish(Place caller, const std::string& line);
  void drop(Place caller);

  EventLoop& loop_;
  const Token& token_;
  Arrived arrived_;
  Port port_;
  std::list<Caller> callers_;  // unproven, oldest first
  Listener listener_;
};

}  // namespace dlrun
