// transfer_to(): connects to another node by TCP and sends bytes to it for a moment, which that node's agent
// throws away (src/agent/peer_sink.hpp). It blocks; callers have a thread for it. What counts is what the
// other machine has acknowledged: bytes that wait in our own buffers went nowhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::health {

struct Peer {
  std::vector<std::string> addresses;  // names too; tried in this order
  int port = 0;
};

struct Transfer {
  std::string problem;  // empty: it was reached
  Seconds connect{0};   // until it was
  std::int64_t bytes = 0;
  Seconds took{0};
};

/// A connection to the peer's port, which was told `line`; it is not blocking.
Result<UniqueFd> connect_to_peer(const Peer& peer, const std::string& line);

/// `token` is the line that the other side waits for. `send` is how long to send; 0: only reach it.
Transfer transfer_to(const Peer& peer, const std::string& token, Seconds send);

/// Several at a time; the answers are in the peers' order.
std::vector<Transfer> transfer_to_all(const std::vector<Peer>& peers, const std::string& token, Seconds send);

}  // namespace dlrun::health
