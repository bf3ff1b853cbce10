// HostAllreduce: the sums of a Communicator whose ranks exchange messages, whatever carries these, and, where
// all ranks are on one node, through shared memory. Messages move on a thread of their own while the caller
// computes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/comm/allreduce/algorithm.hpp"
#include "runtime/comm/allreduce/allreduce.hpp"
#include "runtime/comm/job_thread.hpp"
#include "runtime/comm/transport/shared_memory.hpp"

namespace dlrun::runtime {

class HostAllreduce {
 public:
  // The MPI's own sum, for Allreduce::mpi; unset where there is no MPI.
  using LibrarySum = std::function<Result<void>(std::span<float>)>;
  // All outlive the jobs on `thread`.
  HostAllreduce(Transport& link, JobThread& thread, Allreduce allreduce, LibrarySum library_sum)
      : link_(link), thread_(thread), allreduce_(allreduce), library_sum_(std::move(library_sum)) {}

  // Memory that all ranks see, of SharedMemorySum::bytes(ranks).
  void share(void* memory) { shared_.emplace(memory, link_.rank(), link_.size()); }
  bool may_share() const { return link_.size() > 1 && allreduce_ == Allreduce::automatic; }
  bool shared() const { return shared_.has_value(); }

  // As the Communicator's functions of like names.
  Result<void> start(std::span<float> data, Wire wire);
  Result<void> start_served(std::span<const ServedPiece> pieces);
  Result<void> wait_all();
  Result<void> group_sum(std::span<const int> group, std::span<float> data, Wire wire);
  Result<void> barrier();

 private:
  struct Noted {
    std::span<float> data;
    Wire wire;
  };
  Result<void> sum(std::span<float> data, Wire wire);

  Transport& link_;
  JobThread& thread_;
  Allreduce allreduce_;
  LibrarySum library_sum_;
  std::optional<SharedMemorySum> shared_;
  std::vector<Noted> noted_;
  Scratch scratch_;  // the thread's
};

}  // namespace dlrun::runtime
