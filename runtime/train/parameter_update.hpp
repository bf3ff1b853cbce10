// ParameterUpdate: from summed gradients to new weights on all ranks. Where each rank has all of the
// optimizer's state, all make the same update. Where the state is divided (ZeRO stage 1), each updates its
// part, which then goes to the others, bucket by bucket, while the next bucket is updated.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

class ServerClient;

class ParameterUpdate {
 public:
  /// Which gradients a rank has summed: all, or those of its part.
  enum class Sums { all, own_part };
  /// `servers`: where other processes make the update.
  ParameterUpdate(Engine& engine, Communicator& group, Sums sums, ServerClient* servers = nullptr)
      : engine_(engine), group_(group), sums_(sums), servers_(servers) {}

  /// The sum of the squares of all gradients, the same on all ranks.
  Result<double> squares() const;
  Result<void> apply(const UpdateStep& step);
  /// What apply() computes, without the other ranks: leaves weights that are of no use to a training.
  void apply_alone(const UpdateStep& step);
  /// The weights of the other ranks' parts come to this one.
  Result<void> gather();

 private:
  Result<void> gather_start(std::size_t bucket);

  Engine& engine_;
  Communicator& group_;
  Sums sums_;
  ServerClient* servers_;
};

/// In the order of a sum with sixteen lanes.
double square_sum_of(std::span<const float> gradients);

/// By what gradients are multiplied, besides `scale`, so that their norm is at most `limit`. `squares`: their
/// sum, without the scale. As PyTorch's clip_grad_norm_.
double clipping_factor(double limit, double squares, double scale);

/// What of a parameter's gradient a rank of the data group has summed, where each sums its part alone.
Bucket summed_part(Engine& engine, const GradientSlice& slice, int data_rank);

/// Where each rank of the data group has summed its part of these gradients alone: all of their sums on all.
Result<void> gather_sums(Engine& engine, std::span<const GradientSlice> slices, Communicator& data);

/// The weights of the other ranks' parts come to this one, where each has changed its part.
Result<void> gather_weights(Engine& engine, Communicator& group);

}  // namespace dlrun::runtime
