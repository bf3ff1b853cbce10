// MpiTransport: messages of an MPI, moved by the thread that waits for them. While the poster of a job still
// computes, waiting sleeps between two polls, so that it takes no processor from the computation; once
// somebody waits for the result it polls all the time, and sleeps again where that takes long (a dead peer,
// more ranks than processors).
#pragma once

#include <unordered_map>

#include "runtime/comm/job_thread.hpp"
#include "runtime/comm/mpi/library.hpp"
#include "runtime/comm/transport/transport.hpp"

namespace dlrun::runtime {

class MpiTransport final : public Transport {
 public:
  /// After MPI was started; used on `thread` only.
  MpiTransport(const MpiLibrary& mpi, const JobThread& thread)
      : mpi_(mpi), thread_(thread), rank_(mpi->rank()), size_(mpi->size()) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Result<Ticket> send_start(std::span<const std::byte> data, int to) override;
  Result<Ticket> receive_start(std::span<std::byte> data, int from) override;
  Result<void> wait(Ticket ticket) override;
  Result<std::size_t> wait_any(std::span<const Ticket> tickets) override;

 private:
  struct Receive {
    int from = 0;
    std::size_t bytes = 0;
  };
  Result<void> check_length(std::size_t ticket, std::size_t bytes);

  const MpiLibrary& mpi_;
  const JobThread& thread_;
  int rank_;
  int size_;
  std::unordered_map<std::size_t, Receive> receives_;  // by ticket
};

}  // namespace dlrun::runtime
