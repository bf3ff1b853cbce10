// See parameter_update.hpp.
#include "runtime/train/parameter_update.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/optim/optimizer.hpp"
#include "runtime/train/gradient_parts.hpp"
#include "runtime/train/servers/server_client.hpp"

namespace dlrun::runtime {

double square_sum_of(std::span<const float> gradients) {
  return sums_of(gradients.size(), [&](std::size_t i) {
    return TensorSums{static_cast<double>(gradients[i]) * gradients[i], 0};
  })[0];
}

double clipping_factor(double limit, double squares, double scale) {
  const double norm = scale * std::sqrt(squares);
  return std::min(1.0, limit / (norm + 1e-6));
}

Result<double> ParameterUpdate::squares() const {
  const std::span<const float> arena = engine_.gradients();
  ShardedEngine* const sharded = engine_.sharded();
  if (sharded == nullptr || sums_ == Sums::all)
    return square_sum_of(arena.first(arena.size() - engine_.spare_slots().size()));
  const auto rank = static_cast<std::size_t>(group_.rank());
  double out = 0;
  for (std::size_t bucket = 0; bucket < engine_.buckets().size(); ++bucket) {
    const std::vector<std::size_t>& borders = sharded->borders()[bucket];
    out += square_sum_of(
        arena.subspan(engine_.buckets()[bucket].offset + borders[rank], borders[rank + 1] - borders[rank]));
  }
  TRY(group_.allreduce(std::span(&out, 1)));
  return out;
}

Result<void> ParameterUpdate::apply(const UpdateStep& step) {
  if (servers_ != nullptr) return servers_->update(step);
  ShardedEngine* const sharded = engine_.sharded();
  if (sharded == nullptr) {
    engine_.apply(step);
    return {};
  }
  std::vector<double> sums = sharded->measure(step);
  if (!sums.empty()) TRY(group_.allreduce(std::span(sums)));
  for (std::size_t bucket = 0; bucket < engine_.buckets().size(); ++bucket) {
    sharded->update(step, bucket, sums);
    TRY(gather_start(bucket));
  }
  TRY(group_.wait_all());
  sharded->values_changed();
  return {};
}

void ParameterUpdate::apply_alone(const UpdateStep& step) {
  ShardedEngine* const sharded = engine_.sharded();
  if (sharded == nullptr) return engine_.apply(step);
  const std::vector<double> sums = sharded->measure(step);
  for (std::size_t bucket = 0; bucket < engine_.buckets().size(); ++bucket)
    sharded->update(step, bucket, sums);
  sharded->values_changed();
}

Result<void> ParameterUpdate::gather_start(std::size_t bucket) {
  ShardedEngine& sharded = *engine_.sharded();
  const std::vector<std::size_t>& borders = sharded.borders()[bucket];
  const std::span<float> weights = sharded.values().subspan(engine_.buckets()[bucket].offset, borders.back());
  return group_.allgather_start(weights, borders);
}

Result<void> ParameterUpdate::gather() {
  if (servers_ != nullptr) return servers_->update({.learning_rate = 0, .gradient_scale = 0});
  if (engine_.sharded() == nullptr) return {};
  for (std::size_t bucket = 0; bucket < engine_.buckets().size(); ++bucket) TRY(gather_start(bucket));
  TRY(group_.wait_all());
  engine_.sharded()->values_changed();
  return {};
}

Bucket summed_part(Engine& engine, const GradientSlice& slice, int data_rank) {
  const std::span<const Bucket> buckets = engine.buckets();
  std::size_t bucket = 0;
  while (slice.offset >= buckets[bucket].offset + buckets[bucket].length) ++bucket;
  const std::vector<std::size_t>& borders = engine.sharded()->borders()[bucket];
  const auto border = [&](int rank) {
    return std::clamp(buckets[bucket].offset + borders[static_cast<std::size_t>(rank)], slice.offset,
                      slice.offset + slice.length);
  };
  return {border(data_rank), border(data_rank + 1) - border(data_rank)};
}

// As one message: what the first rank has of each gradient, then what the second has, and so on.
Result<void> gather_sums(Engine& engine, std::span<const GradientSlice> slices, Communicator& data) {
  std::vector<Bucket> pieces;
  std::vector<std::size_t> borders = {0};
  for (int rank = 0; rank < data.size(); ++rank) {
    std::size_t end = borders.back();
    for (const GradientSlice& slice : slices)
      end += pieces.emplace_back(summed_part(engine, slice, rank)).length;
    borders.push_back(end);
  }
  const std::span<float> arena = engine.gradients();
  std::vector<float> together;
  together.reserve(borders.back());
  append_parts(arena, pieces, together);
  TRY(data.allgather_start(together, borders));
  TRY(data.wait_all());
  put_parts(together, pieces, arena);
  return {};
}

Result<void> gather_weights(Engine& engine, Communicator& group) {
  return ParameterUpdate(engine, group, ParameterUpdate::Sums::all).gather();
}

}  // namespace dlrun::runtime
