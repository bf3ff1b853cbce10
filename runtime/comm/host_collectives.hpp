// HostCollectives: the collectives of ranks that exchange messages, whatever carries these, and, where all
// ranks are on one node, through shared memory. Messages move on a thread of their own while the caller
// computes. HostCommunicator offers them as a Communicator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/trace.hpp"
#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/comm/allreduce/allreduce.hpp"
#include "runtime/comm/allreduce/node_sums.hpp"
#include "runtime/comm/allreduce/partition.hpp"
#include "runtime/comm/job_thread.hpp"
#include "runtime/comm/transport/shared_memory.hpp"

namespace dlrun::runtime {

class HostCollectives {
 public:
  /// The MPI's own allreduce; unset where there is none.
  using LibraryAllreduce = std::function<Result<void>(std::span<float>)>;
  /// All outlive the jobs on `thread`.
  HostCollectives(Transport& link, JobThread& thread, const AllreduceChoice& choice, LibraryAllreduce library)
      : link_(link), thread_(thread), choice_(choice), library_(std::move(library)) {}

  /// Memory that all ranks see, of SharedMemoryAllreduce::bytes(ranks).
  void share(void* memory, SharedMemoryAllreduce::Lost lost = {}) {
    shared_.emplace(memory, link_.rank(), link_.size());
    shared_->set_lost(std::move(lost));
  }
  bool may_share() const { return link_.size() > 1 && suits_nodes(); }
  /// Whether sums may be made inside nodes first: allreduce where the job asks for it, as its gain over a
  /// network is not measured, and those of parameter servers.
  bool suits_nodes() const { return choice_.is_auto() || choice_.is("hierarchical"); }
  void sum_by_nodes(std::unique_ptr<NodeSums> sums) { nodes_ = std::move(sums); }
  /// Null where they are not.
  const NodeSums* node_sums() const { return nodes_.get(); }
  bool shared() const { return shared_.has_value(); }
  const AllreduceChoice& choice() const { return choice_; }
  void set_trace(Trace& trace) { trace_ = &trace; }
  int rank() const { return link_.rank(); }
  int size() const { return link_.size(); }

  /// The functions of Communicator with the same names.
  Result<void> allreduce_start(std::span<float> data, CommDtype dtype);
  Result<void> parameter_server_allreduce_start(std::span<const ServedPiece> pieces);
  Result<void> tree_allreduce_start(const TreeTerms& data);
  Result<void> reduce_scatter_start(std::span<float> data, std::span<const std::size_t> borders,
                                    CommDtype dtype);
  Result<void> allgather_start(std::span<float> data, std::span<const std::size_t> borders);
  Result<void> wait_all();
  Result<void> allreduce(std::span<double> data);
  Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine, CommDtype dtype);
  Result<void> broadcast(std::span<std::byte> data, int root);
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all);
  Result<void> barrier();
  Result<void> send(std::span<const std::byte> data, int to);
  Result<void> receive(std::span<std::byte> data, int from);
  Result<void> exchange_start(std::function<Result<void>(Transport& link)> exchange);

 private:
  struct Deferred {
    std::span<float> data;
    CommDtype dtype;
  };
  struct DeferredParts {
    enum class Kind { reduce_scatter, allgather } kind;
    std::span<float> data;
    Borders borders;
    CommDtype dtype;
  };
  Result<void> run_shared(const DeferredParts& parts);
  /// One sum of so many floats, in the trace.
  Result<void> traced(const char* what, std::size_t floats, const std::function<Result<void>()>& sum);
  Result<void> run_allreduce(std::span<float> data, CommDtype dtype);
  Result<void> check_rank(int rank) const;
  Result<void> check_peer(int rank) const;

  Transport& link_;
  JobThread& thread_;
  AllreduceChoice choice_;
  LibraryAllreduce library_;
  std::optional<SharedMemoryAllreduce> shared_;
  std::unique_ptr<NodeSums> nodes_;
  std::vector<Deferred> deferred_;
  std::vector<TreeTerms> deferred_trees_;
  std::vector<DeferredParts> deferred_parts_;
  Trace* trace_ = nullptr;
  Scratch scratch_;  // the thread's
};

}  // namespace dlrun::runtime
