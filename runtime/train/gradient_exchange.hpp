// GradientExchange: how the ranks' gradients become one sum: by allreduce, in the dtype that the job names,
// or by parameter servers. Each bucket starts as soon as it is final. Loss, counts and requests travel behind
// the last gradient, and always exactly.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/train/server_placement.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

class GradientExchange {
 public:
  /// An Error where servers are asked for that the ranks or the engine do not have.
  static Result<GradientExchange> make(const TrainSpec& spec, Engine& engine, Communicator& comm);

  /// This bucket's gradients are final.
  Result<void> start(std::size_t bucket);
  /// The spare slots are filled; after it, all of the arena is summed.
  Result<void> finish();

  /// What the servers have, where there are any.
  const std::vector<ServerLoad>& server_loads() const { return loads_; }

 private:
  GradientExchange(const TrainSpec& spec, Engine& engine, Communicator& comm)
      : engine_(&engine), comm_(&comm), dtype_(spec.allreduce.dtype) {}
  Result<void> choose_servers(const ParameterServerSpec& spec);
  bool travels_whole() const { return dtype_ == CommDtype::f32 && loads_.empty(); }
  bool is_last(std::size_t bucket) const { return bucket + 1 == engine_->buckets().size(); }
  std::span<float> gradients(std::size_t bucket) const;  // without the spare slots

  Engine* engine_;
  Communicator* comm_;
  CommDtype dtype_;
  std::vector<PlacedSlice> slices_;  // by offset; server is a rank here
  std::vector<ServerLoad> loads_;
};

}  // namespace dlrun::runtime
