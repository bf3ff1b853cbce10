// ServerClient: a worker's side of parameter servers that are processes of their own: its gradients go to the
// servers as soon as they are there, and in place of an update of its own it takes the weights that come
// back. Where workers of one node add their gradients first, one of them does that for all.
#pragma once

#include <memory>
#include <string>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/train/server_placement.hpp"
#include "runtime/train/servers/node_gradients.hpp"
#include "runtime/train/servers/server_protocol.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

class ServerClient {
 public:
  /// The servers are the last ranks of the world, the workers all others. Both outlive this.
  struct Ranks {
    Communicator& world;
    Communicator& workers;
  };
  /// All workers call it, with weights and state as they start from. An Error where there are more servers
  /// than tensors or parts to place.
  static Result<std::unique_ptr<ServerClient>> make(const TrainSpec& spec, Engine& engine, const Ranks& ranks,
                                                    const Environment& environment);

  /// This bucket's gradients are final. As Communicator::allreduce_start().
  Result<void> start(const Bucket& bucket);
  /// All of a step's are: the servers update by them, and the weights become theirs. With a staleness above 0
  /// the step is this worker's own: its factors are for its gradients alone.
  Result<void> update(const UpdateStep& step);
  /// The weights of all workers' steps so far, once all have taken as many. All workers call it.
  Result<void> fetch();
  /// The optimizer's state comes into the engine. The first worker calls it, where all have taken as many
  /// steps.
  Result<void> read_state();
  /// No more will be asked. All workers call it.
  Result<void> finish();

  int staleness() const { return staleness_; }
  /// The workers that this one's gradients are summed with before they are sent, ascending.
  std::vector<int> members() const;
  /// The next step's order asks for a barrier of all workers; and whether it is behind the step that ended.
  void ask_for_barrier() { wants_barrier_ = true; }
  bool is_at_barrier() const { return answer_.barrier_after == steps_; }
  /// The steps by which a worker was ahead of the slowest, at most.
  std::uint32_t most_lead() const { return answer_.most_lead; }

  const std::vector<ServerLoad>& loads() const { return loads_; }
  /// For people.
  std::string description() const;

 private:
  struct Piece {  // of the arena, as it travels
    MessagePart part;
    int rank = 0;  // the server's
  };
  ServerClient(const TrainSpec& spec, Engine& engine, const Ranks& ranks);
  Result<void> place(const TrainSpec& spec);
  Result<void> set_up(const TrainSpec& spec);
  Result<void> send_setup(Transport& link, int server, const std::vector<PlacedSlice>& slices,
                          const TrainSpec& spec);
  Result<void> begin_step(Transport& link);
  Result<void> send_bucket(Transport& link, const Bucket& bucket);
  Result<void> send_piece(Transport& link, const Piece& piece);
  Result<void> order(Transport& link, Order::Kind kind);
  Result<void> exchange_weights(Transport& link, const Numbers* numbers);
  Result<void> take_weights(const std::optional<UpdateStep>& step);
  Result<void> receive_state(Transport& link);
  bool sends() const { return node_ == nullptr || node_->sends(); }
  std::vector<int> senders() const;
  int servers() const { return ranks_.world.size() - ranks_.workers.size(); }

  Engine& engine_;
  ServedEngine& served_;
  Ranks ranks_;
  CommDtype dtype_;
  int staleness_;
  std::size_t state_slots_;
  std::unique_ptr<NodeGradients> node_;  // where workers of a node add first
  std::vector<PlacedSlice> slices_;      // by offset; `server` counts servers
  std::vector<Piece> pieces_;            // by offset
  std::vector<ServerLoad> loads_;
  std::span<float> weights_;
  std::vector<std::byte> packed_;  // gradients in 16 bits, as they travel
  // Of the thread that moves messages, while it has work.
  bool began_ = false;  // the step
  std::vector<Transport::Ticket> sent_;
  Order order_;
  Numbers numbers_;
  Answer answer_;
  bool wants_barrier_ = false;
  std::uint64_t steps_ = 0;
};

}  // namespace dlrun::runtime
