// GradientExchange: how the ranks' gradients become one sum: by allreduce, in the dtype that the job names,
// or by parameter servers. Where the optimizer's state is divided (ShardedEngine), each rank gets the sum of
// its part alone, by a reduce-scatter. Each bucket starts as soon as it is final. Loss, counts and requests
// travel behind the last gradient, and always exactly.
#pragma once

#include <functional>

#include "runtime/comm/communicator.hpp"
#include "runtime/train/accumulated_gradients.hpp"
#include "runtime/train/parameter_update.hpp"
#include "runtime/train/server_placement.hpp"
#include "runtime/train/servers/server_client.hpp"
#include "runtime/train/shard_sums.hpp"
#include "runtime/train/stage_agreement.hpp"
#include "runtime/train/tensor_agreement.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

/// What this rank computes of each global batch. Where the job sets no shards, a rank is one.
struct ShardsOfRank {
  int shards = 1;  // of the global batch
  ShardRange own = {0, 1};
};

/// The groups of a rank whose ranks have other parts of the model, and the processes that update its weights;
/// null where there are none.
struct ModelGroups {
  Communicator* tensor = nullptr;
  Communicator* pipeline = nullptr;
  ServerClient* servers = nullptr;
};

class GradientExchange {
 public:
  /// `shards`: of the global batch, where the job sets them. An Error where there are fewer than ranks, or
  /// where more servers are asked for than there are ranks.
  /// `comm`: the ranks that have other samples.
  static Result<GradientExchange> make(const TrainSpec& spec, Engine& engine, Communicator& comm,
                                       std::optional<int> shards = {}, const ModelGroups& groups = {});

  ShardsOfRank shards() const;
  /// The batches of an update: as many per shard as the job accumulates.
  ShardsOfRank batches() const;
  /// From now on: whether gradients are summed over the ranks, or stay this rank's own.
  enum class Exchange { together, alone };
  void set_exchange(Exchange exchange) { exchange_ = exchange; }
  /// The ranks are others: so are this rank's shards. ErrorKind::lost where they are others again already.
  Result<void> regroup();
  /// What regroup() does first, where devices sum gradients.
  void set_connect_devices(std::function<Result<void>()> connect) { connect_devices_ = std::move(connect); }
  /// The engine's next batch is this one, the step's first one for this rank where it begins its range.
  Result<void> begin(int batch);
  /// All gradients and the spare slots of a batch are final which is not the rank's last.
  void keep() { sums_ ? sums_->keep() : accumulated_->keep(); }
  /// This bucket's gradients of the rank's last batch are final.
  Result<void> start(std::size_t bucket);
  /// The spare slots are filled; after it, all of the arena is summed, or this rank's part of it.
  Result<void> finish();
  ParameterUpdate::Sums sums() const {
    return scatters() ? ParameterUpdate::Sums::own_part : ParameterUpdate::Sums::all;
  }
  /// The ranks that sum gradients with this one.
  Communicator& group() const { return *comm_; }

  /// After finish(): the sum of the squares of all gradients of the model.
  Result<double> square_sum() const;

  /// What the servers have, where there are any.
  const std::vector<ServerLoad>& server_loads() const { return loads_; }
  /// Null where the ranks update by themselves.
  ServerClient* servers() const { return groups_.servers; }

 private:
  GradientExchange(const TrainSpec& spec, Engine& engine, Communicator& comm)
      : engine_(&engine), comm_(&comm), dtype_(spec.allreduce.dtype), accumulate_(spec.accumulate) {}
  Result<void> send(std::size_t bucket);
  Result<void> start_tied();
  Result<void> finish_over_data();
  Result<void> choose_servers(const ParameterServerSpec& spec);
  bool travels_whole() const { return dtype_ == CommDtype::f32 && loads_.empty(); }
  // Sums of shards have their own order, for which every rank needs all of them.
  bool scatters() const { return engine_->sharded() != nullptr && !sums_; }
  bool is_last(std::size_t bucket) const { return bucket + 1 == engine_->buckets().size(); }
  std::span<float> gradients(std::size_t bucket) const;  // without the spare slots

  Engine* engine_;
  Communicator* comm_;
  CommDtype dtype_;
  int accumulate_;  // batches per rank or shard and update
  Exchange exchange_ = Exchange::together;
  std::vector<PlacedSlice> slices_;  // by offset; server is a rank here
  std::vector<ServerLoad> loads_;
  std::unique_ptr<ShardSums> sums_;  // where there are shards
  std::function<Result<void>()> connect_devices_;
  ModelGroups groups_;
  std::optional<TensorAgreement> tensor_;              // where there are tensor groups
  std::optional<StageAgreement> stages_;               // where there are pipelines
  std::unique_ptr<AccumulatedGradients> accumulated_;  // where there are none, and several batches per update
};

}  // namespace dlrun::runtime
