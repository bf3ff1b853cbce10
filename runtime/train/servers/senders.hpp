// Senders: who sends gradients to a parameter server, and the slices that it has for them, as the first
// worker tells at the start. What synchronous and stale servers have in common.
#pragma once

#include "runtime/base/comm_dtype.hpp"
#include "runtime/train/servers/server_slices.hpp"

namespace dlrun::runtime {

struct Senders {
  std::vector<int> ranks;  // ascending
  std::uint32_t staleness = 0;
  CommDtype dtype = CommDtype::f32;  // of gradients
  ServerSlices slices;

  /// Waits for the first worker's ServerSetup, and takes weights and state from it.
  static Result<Senders> connect(Transport& link, const Optimizer& optimizer, CommDtype dtype);

  /// `numbers` lie as the weights do, and still until the tickets were awaited.
  Result<void> send_parts(Transport& link, std::span<const float> numbers, int to,
                          std::vector<Transport::Ticket>& tickets) const;
  Result<void> send_state(Transport& link, int to) const;
};

}  // namespace dlrun::runtime
