// RankPort: the TCP port on which a rank waits for other ranks of its job. Who connects proves itself first
// (rank_proof.hpp) within a limit; all callers are read side by side, so that strangers, however many and
// however quiet, cost nothing once all ranks are there. It serves one start and is closed after it.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "runtime/comm/transport/tcp.hpp"
#include "src/base/token.hpp"

namespace dlrun::runtime {

// Connected, and proven to be what it says. The socket does not block.
struct ConnectedRank {
  UniqueFd socket;
  int rank = 0;
  std::string host;
  std::string name() const { return fmt::format("rank {} on {}", rank, host); }
};

struct StartLimits {
  std::chrono::milliseconds all{120'000};   // in which all ranks must come
  std::chrono::milliseconds proof{10'000};  // in which one caller must prove itself
};

class RankPort {
 public:
  static Result<RankPort> open();
  /// "TOKEN PORT HOST ADDRESS...": what connect_to_rank() needs; for the job's own ranks alone.
  std::string announcement() const;
  /// Until all of these have connected; an Error names those that have not. In the order of the ranks.
  Result<std::vector<ConnectedRank>> accept(std::set<int> expected, const StartLimits& limits = {}) const;
  /// On any thread: accept() ends with an Error.
  void shut() const;

 private:
  RankPort(tcp::Listener listener, const Token& token) : listener_(std::move(listener)), token_(token) {}
  tcp::Listener listener_;
  Token token_;
};

}  // namespace dlrun::runtime
