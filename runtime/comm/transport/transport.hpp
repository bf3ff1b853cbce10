// Transport: messages between two ranks, started now and awaited later. Between two ranks they arrive in the
// order in which they were sent, and the receiver expects them in that order. Collectives are written against
// it; behind it is an MPI (mpi/transport.hpp), TCP (socket_transport.hpp), a group of either (group_link.hpp)
// or, in tests, threads.
#pragma once

#include <cstddef>
#include <span>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class Transport {
 public:
  enum class Ticket : std::size_t {};  // of a message under way; every one is awaited once
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The memory lies still until the ticket was awaited.
  virtual Result<Ticket> send_start(std::span<const std::byte> data, int to) = 0;
  virtual Result<Ticket> receive_start(std::span<std::byte> data, int from) = 0;
  virtual Result<void> wait(Ticket ticket) = 0;
  /// Until one of them is done, which is then awaited: its place among them. An Error of any message ends it.
  virtual Result<std::size_t> wait_any(std::span<const Ticket> tickets) = 0;

  Result<void> wait_for(std::span<const Ticket> tickets) {
    for (const Ticket ticket : tickets) TRY(wait(ticket));
    return {};
  }
};

}  // namespace dlrun::runtime
