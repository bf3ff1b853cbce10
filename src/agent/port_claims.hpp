// PortClaims: TCP ports of this node that are held for ranks until these start. A port that we hold nobody
// else can bind, whatever options he sets; it is let go just before the rank that is to open it is started.
// It never exchanges a port for another: what is taken is reported, and the head plans anew.
#pragma once

#include <map>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::agent {

class PortClaims {
 public:
  using Taken = protocol::from_agent::TakenPort;
  // Holds these ports and lets go of all others. Returns those that somebody else has. An Error where the
  // system gives no sockets.
  Result<std::vector<Taken>> claim(const std::vector<int>& ports);
  void release(int port) { held_.erase(port); }
  std::size_t size() const { return held_.size(); }

 private:
  struct Held {
    UniqueFd mark, port;
  };
  std::map<int, Held> held_;
};

}  // namespace dlrun::agent
