// HostCommunicator: a Communicator of ranks that exchange messages on one thread, and its process groups. The
// world is a backend's (own_communicator.cpp, mpi/communicator.cpp); a group sends its messages over the
// world's transport and needs no connection of its own, so every backend has the same groups with the same
// bits.
#pragma once

#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/host_collectives.hpp"

namespace dlrun::runtime {

class HostCommunicator : public Communicator {
 public:
  int rank() const override { return collectives_->rank(); }
  int size() const override { return collectives_->size(); }
  Result<void> allreduce_start(std::span<float> data, CommDtype dtype = CommDtype::f32) override {
    return collectives_->allreduce_start(data, dtype);
  }
  Result<void> parameter_server_allreduce_start(std::span<const ServedPiece> pieces) override {
    TRY(make_node_sums());
    return collectives_->parameter_server_allreduce_start(pieces);
  }
  Result<void> tree_allreduce_start(const TreeTerms& data) override {
    return collectives_->tree_allreduce_start(data);
  }
  Result<void> wait_all() override { return collectives_->wait_all(); }
  using Communicator::allreduce;
  Result<void> allreduce(std::span<double> data) override { return collectives_->allreduce(data); }
  Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine,
                              CommDtype dtype = CommDtype::f32) override {
    return collectives_->reduce_scatter(data, mine, dtype);
  }
  Result<void> reduce_scatter_start(std::span<float> data, std::span<const std::size_t> borders,
                                    CommDtype dtype) override {
    return collectives_->reduce_scatter_start(data, borders, dtype);
  }
  Result<void> allgather_start(std::span<float> data, std::span<const std::size_t> borders) override {
    return collectives_->allgather_start(data, borders);
  }
  Result<void> broadcast(std::span<std::byte> data, int root) override {
    return collectives_->broadcast(data, root);
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return collectives_->allgather(mine, all);
  }
  Result<void> barrier() override { return collectives_->barrier(); }
  Result<void> send(std::span<const std::byte> data, int to) override { return collectives_->send(data, to); }
  Result<void> receive(std::span<std::byte> data, int from) override {
    return collectives_->receive(data, from);
  }
  Result<void> exchange_start(Exchange exchange) override {
    return collectives_->exchange_start(std::move(exchange));
  }
  Result<std::unique_ptr<Communicator>> split(int color, int key) override;
  void set_trace(Trace& trace) override { collectives_->set_trace(trace); }

 protected:
  /// What all groups of a world use.
  struct World {
    Communicator& communicator;
    Transport& link;
    JobThread& thread;
  };
  /// Before any other call. `members`: the world's ranks that belong to this communicator, in its order.
  void use(HostCollectives& collectives, const World& world, std::vector<int> members);
  static std::vector<int> whole_world(int ranks);

  /// Sums are made inside nodes first, where there are several nodes with several ranks each, as many on all:
  /// an allreduce that the job asks for, and sums on servers, for which the memory is made by the first of
  /// them. An Error where the job asks for that, and the nodes are others. All ranks call it, after use().
  /// `lost` is asked about ranks of this node that are waited for.
  Result<void> sum_by_nodes(std::vector<std::uint64_t> node_of, SharedMemoryAllreduce::Lost lost = {});
  /// "; sums inside nodes first (4 nodes of 2 ranks)", or nothing
  std::string nodes_text() const;

 private:
  class Group;
  Result<void> make_node_sums();
  HostCollectives* collectives_ = nullptr;
  std::optional<World> world_;
  std::vector<int> members_;
  std::vector<std::uint64_t> node_of_;  // where sums inside nodes are still to be made
  SharedMemoryAllreduce::Lost lost_;    // for these
};

}  // namespace dlrun::runtime
