// OutputFlow: which ranks have to wait while the head takes what they print more slowly than they print it.
// Pure. Who floods waits; the others go on until the node has more to say than memory is given for. Once all
// has left us, everybody goes on.
#pragma once

#include <cstddef>
#include <map>

#include "src/base/types.hpp"

namespace dlrun::agent {

class OutputFlow {
 public:
  static constexpr std::size_t kMaxQueued = std::size_t{8} << 20;  // bytes to the head, of all ranks
  static constexpr std::size_t kMaxOfOne = std::size_t{1} << 20;   // of one rank

  enum class Pause { none, rank, all };
  /// `bytes` of this rank's wait, as part of `queued`: who is to wait now.
  Pause waits(Rank rank, std::size_t bytes, std::size_t queued) {
    const bool floods = (queued_of_[rank.get()] += bytes) > kMaxOfOne;
    return queued > kMaxQueued ? Pause::all : floods ? Pause::rank : Pause::none;
  }
  void drained() { queued_of_.clear(); }
  /// Whether the queue has capacity for messages that may be dropped.
  static bool has_capacity(std::size_t queued) { return queued <= kMaxOfOne; }

 private:
  std::map<int, std::size_t> queued_of_;  // by rank, since the queue was empty
};

}  // namespace dlrun::agent
