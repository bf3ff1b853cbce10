// See state_layout.hpp.
#include "runtime/engine/state_layout.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "runtime/base/keyed_random.hpp"
#include "runtime/engine/initial_values.hpp"
#include "runtime/optim/average.hpp"

namespace dlrun::runtime {

std::size_t StateLayout::declare(ParameterSpec spec) {
  parameters_.push_back(std::move(spec));
  return parameters_.size() - 1;
}

std::size_t StateLayout::declare(StatisticSpec spec) {
  statistic_offsets_.push_back(statistic_floats_);
  statistic_floats_ += padded_slice(static_cast<std::size_t>(spec.elements));
  statistics_.push_back(std::move(spec));
  return statistics_.size() - 1;
}

// From the last node to the first, in a node as declared.
std::vector<std::size_t> StateLayout::backward_order() const {
  std::vector<std::size_t> order(parameters_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [this](std::size_t left, std::size_t right) {
    return parameters_[left].node > parameters_[right].node;
  });
  return order;
}

void StateLayout::finish(const OptimizerTraits& optimizer, std::size_t bucket_bytes, Averages averages,
                         const std::optional<StatePart>& part) {
  const std::vector<std::size_t> order = backward_order();
  slices_.resize(parameters_.size());
  for (const std::size_t index : order) {
    slices_[index] = {floats_, padded_slice(parameters_[index].floats)};
    floats_ += slices_[index].length;
  }
  floats_ += kSpareSlots;
  cut_buckets(order, bucket_bytes);
  for (const Bucket& slice : slices_) owned_.push_back({0, slice.length, slice.offset});
  state_floats_ = floats_;
  if (part) divide(order, *part);
  std::vector<std::string_view> state = optimizer.state;
  if (averages == Averages::kept) state.push_back(kAverageSuffix);
  list_tensors(state);
}

// A bucket is closed once it holds enough. The last one has the spare slots too, and is the only one where
// there are no parameters.
void StateLayout::cut_buckets(const std::vector<std::size_t>& order, std::size_t bucket_bytes) {
  std::size_t begin = 0;
  const auto close = [this, &begin](std::size_t end, std::size_t node) {
    buckets_.push_back({begin, end - begin});
    bucket_nodes_.push_back(node);
    begin = end;
  };
  for (const std::size_t index : order) {
    const std::size_t end = slices_[index].offset + slices_[index].length;
    if (index != order.back() && (end - begin) * sizeof(float) >= bucket_bytes)
      close(end, parameters_[index].node);
  }
  close(floats_, order.empty() ? 0 : parameters_[order.back()].node);
}

// The border of two blocks of a parameter, or of two parameters, that is next to this place of the arena.
std::size_t StateLayout::nearest_cut(const std::vector<std::size_t>& order, std::size_t wanted) const {
  for (const std::size_t index : order) {
    const Bucket& slice = slices_[index];
    if (wanted >= slice.offset + slice.length) continue;
    const std::size_t within = wanted - slice.offset, floats = parameters_[index].cuts.floats;
    const std::size_t unit = floats == 0 ? slice.length : floats;
    return slice.offset + std::min((within + unit / 2) / unit * unit, slice.length);
  }
  return floats_ - kSpareSlots;
}

// Each bucket into parts as equal as the blocks allow, so that all ranks add gradients all the time.
void StateLayout::divide(const std::vector<std::size_t>& order, const StatePart& part) {
  for (const Bucket& bucket : buckets_) {
    const std::size_t end = std::min(bucket.offset + bucket.length, floats_ - kSpareSlots);
    const std::size_t length = end - bucket.offset, ranks = static_cast<std::size_t>(part.ranks);
    std::vector<std::size_t>& borders = borders_.emplace_back();
    for (std::size_t rank = 0; rank < ranks; ++rank)
      borders.push_back(nearest_cut(order, bucket.offset + length * rank / ranks) - bucket.offset);
    borders.push_back(length);
  }
  state_floats_ = 0;
  std::size_t bucket = 0;
  for (const std::size_t index : order) {
    const Bucket& slice = slices_[index];
    while (slice.offset >= buckets_[bucket].offset + buckets_[bucket].length) ++bucket;
    const auto border = [&](int rank) {
      const std::size_t at = buckets_[bucket].offset + borders_[bucket][static_cast<std::size_t>(rank)];
      return std::clamp(at, slice.offset, slice.offset + slice.length) - slice.offset;
    };
    owned_[index] = {border(part.rank), border(part.rank + 1), state_floats_};
    state_floats_ += owned_[index].end - owned_[index].begin;
  }
}

// Of a parameter's state.
std::vector<TensorBox> StateLayout::held(std::size_t parameter) const {
  const OwnedRange& own = owned_[parameter];
  const ParameterSpec& of = parameters_[parameter];
  const std::size_t length = slices_[parameter].length;
  if (own.begin == own.end) return {};
  const auto in_whole = [&of](const TensorBox& box) {
    return of.of ? of.of->boxes_of(box) : std::vector<TensorBox>{box};
  };
  if (own.begin == 0 && own.end == length) return in_whole(whole_box(of.shape));
  const auto row = [&](std::size_t at) {
    return at == length ? of.shape[of.cuts.axis]
                        : static_cast<std::int64_t>(at / of.cuts.floats) * of.cuts.rows;
  };
  return in_whole(slice_along(of.shape, of.cuts.axis, row(own.begin), row(own.end) - row(own.begin)));
}

// Nodes of buckets fall, as backward runs from the last node to the first.
std::pair<std::size_t, std::size_t> StateLayout::final_after(std::size_t node) const {
  const auto [first, last] =
      std::equal_range(bucket_nodes_.begin(), bucket_nodes_.end(), node, std::greater<>());
  return {first - bucket_nodes_.begin(), last - bucket_nodes_.begin()};
}

std::vector<GradientSlice> StateLayout::gradient_slices() const {
  std::vector<GradientSlice> out;
  for (const std::size_t index : backward_order())
    out.push_back({parameters_[index].name, slices_[index].offset, slices_[index].length,
                   parameters_[index].of.has_value() ? GradientOf::part : parameters_[index].gradient});
  return out;
}

void StateLayout::list(TensorInfo info, TensorPlace place) {
  tensors_.push_back(std::move(info));
  places_.push_back(place);
}

void StateLayout::list_tensors(const std::vector<std::string_view>& state) {
  using Role = TensorInfo::Role;
  using Arena = TensorPlace::Arena;
  const auto info = [](const ParameterSpec& of, std::string_view suffix, Role role) {
    TensorInfo out{.name = of.name + std::string(suffix), .shape = of.shape, .role = role};
    if (of.of) {
      out.shape = of.of->whole;
      out.held = of.of->boxes();
      out.held_by = TensorInfo::HeldBy::data_group;
    }
    if (of.weights == Weights::tied) out.held_by = TensorInfo::HeldBy::earlier_stage;
    return out;
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    list(info(parameters_[i], "", Role::parameter), {Arena::values, 0, i, slices_[i].offset});
  for (std::size_t i = 0; i < statistics_.size(); ++i)
    list({statistics_[i].name, {statistics_[i].elements}, Role::statistic},
         {Arena::statistics, 0, i, statistic_offsets_[i]});
  for (std::size_t slot = 0; slot < state.size(); ++slot)
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      TensorInfo one = info(parameters_[i], state[slot], Role::momentum);
      if (!borders_.empty()) {
        one.held = held(i);
        if (parameters_[i].weights != Weights::tied)
          one.held_by = parameters_[i].of ? TensorInfo::HeldBy::one_rank : TensorInfo::HeldBy::tensor_group;
      }
      list(std::move(one), {Arena::state, slot, i, owned_[i].state_offset});
    }
}

Result<void> StateLayout::check_size(std::size_t tensor, std::size_t count) const {
  const TensorInfo& info = tensors_[tensor];
  if (count == info.elements()) return {};
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("tensor '{}' has {} numbers, not {}", info.name, info.elements(), count),
            .hint = "the values are from another model or another number of classes"});
}

void StateLayout::first_values(std::size_t tensor, std::uint64_t seed, std::span<float> out) const {
  const TensorPlace& at = places_[tensor];
  if (at.arena == TensorPlace::Arena::values) {
    const ParameterSpec& of = parameters_[at.owner];
    const std::uint64_t key = random_key({seed, hash_text(of.name)});
    if (!of.of) return uniform(out, key, of.bound, of.constant);
    return for_each_run(*of.of, [&](const TensorRun& run) {
      uniform(out.subspan(run.in_part, run.count), key + run.in_whole, of.bound, of.constant);
    });
  }
  std::fill(out.begin(), out.end(),
            at.arena == TensorPlace::Arena::statistics ? statistics_[at.owner].constant : 0.0F);
}

std::uint64_t StateLayout::hash(std::uint64_t start) const {
  std::uint64_t hash = start;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    hash = random_key({hash, hash_text(parameters_[i].name), hash_text(parameters_[i].form),
                       slices_[i].offset * sizeof(float), slices_[i].length * sizeof(float)});
  for (const Bucket& bucket : buckets_) hash = random_key({hash, bucket.offset, bucket.length});
  return hash;
}

std::uint64_t plan_hash(const Graph& graph, const EngineOptions& options, const StateLayout& layout) {
  std::uint64_t hash =
      random_key({hash_text(graph.model), static_cast<std::uint64_t>(options.batch),
                  static_cast<std::uint64_t>(options.precision), options.seed, options.bucket_bytes});
  for (const Node& node : graph.nodes)
    hash = random_key(
        {hash, hash_text(node.name), node.operation.index(), static_cast<std::uint64_t>(node.shape.channels),
         static_cast<std::uint64_t>(node.shape.height), static_cast<std::uint64_t>(node.shape.width)});
  return layout.hash(hash);
}

}  // namespace dlrun::runtime
