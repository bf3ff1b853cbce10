// StateLayout: what of a model's state lies where, on every device: parameters in the order in which
// gradients become final in backward, so that a bucket is a slice of the gradient arena; the optimizer's
// state at the same offsets; running statistics in an arena of their own. It also says what ranks must agree
// on (hash), the names and first values of all tensors. A device declares its parameters with the room that
// they take in its own layout, then asks for places. It knows no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/tensor_part.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

// Floats behind the last gradient that travel with the last bucket: loss, correct, stop votes.
inline constexpr std::size_t kSpareSlots = 16;

// Parameters begin at multiples of so many floats in their arenas: a cache line, where the widest vector may.
inline constexpr std::size_t kSliceAlignment = 16;

/// So many floats, and those behind them up to the next slice. Optimizers update these, too.
constexpr std::size_t padded_slice(std::size_t floats) {
  return (floats + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
}

/// Into what a parameter may be divided: blocks of so many floats, of which each is so many rows on an axis.
struct Cuts {
  std::size_t floats = 0;  // 0: it stays whole
  std::size_t axis = 0;
  std::int64_t rows = 0;
};

/// What a rank has of the state of a parameter: floats of its slice, and where they begin in the arena of the
/// state.
struct OwnedRange {
  std::size_t begin = 0, end = 0, state_offset = 0;
};

struct ParameterSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t node = 0;    // the operator that owns it: its gradient is final after that one's backward
  std::size_t floats = 0;  // that the device's layout of it takes
  std::string form = {};   // that layout, in words: equal on all ranks
  float bound = 0, constant = 0;  // starts uniform in [-bound, bound), plus the constant
  std::optional<TensorPart> of = {};
  Cuts cuts = {};
  Weights weights = Weights::own;           // or tied
  GradientOf gradient = GradientOf::whole;  // or term; where it is a part, that says so
};

struct StatisticSpec {
  std::string name;
  std::int64_t elements = 0;
  float constant = 0;  // its first value
};

/// Where a tensor of the state lies.
struct TensorPlace {
  enum class Arena { values, statistics, state };
  Arena arena = Arena::values;
  std::size_t slot = 0;    // of state: which tensor of it
  std::size_t owner = 0;   // the parameter or the statistic, in the order of their declaration
  std::size_t offset = 0;  // floats from the arena's start
};

class StateLayout {
 public:
  /// Returns the parameter's number.
  std::size_t declare(ParameterSpec spec);
  /// Returns the statistic's number; its offset is known at once.
  std::size_t declare(StatisticSpec spec);
  /// Another node's backward completes the parameter's gradient, as the nodes were fused.
  void move_to_node(std::size_t parameter, std::size_t node) { parameters_[parameter].node = node; }
  /// Places all that was declared and cuts the buckets.
  enum class Averages { none, kept };
  void finish(const OptimizerTraits& optimizer, std::size_t bucket_bytes, Averages averages = Averages::none,
              const std::optional<StatePart>& part = {});

  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  const std::vector<StatisticSpec>& statistics() const { return statistics_; }
  std::size_t statistic_offset(std::size_t statistic) const { return statistic_offsets_[statistic]; }
  std::size_t statistic_floats() const { return statistic_floats_; }

  /// Of the arenas of values and gradients, with the spare slots.
  std::size_t floats() const { return floats_; }
  /// Of the arena of one tensor of state per parameter: as many, or this rank's part of them.
  std::size_t state_floats() const { return state_floats_; }
  const OwnedRange& owned(std::size_t parameter) const { return owned_[parameter]; }
  /// Where the state is divided: see ShardedEngine.
  const std::vector<std::vector<std::size_t>>& borders() const { return borders_; }
  /// The parameter's slice of each of them, padding included.
  const Bucket& slice(std::size_t parameter) const { return slices_[parameter]; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The node whose backward completes each bucket.
  const std::vector<std::size_t>& bucket_nodes() const { return bucket_nodes_; }
  /// The buckets that become final with the gradients of `node`: [first, last).
  std::pair<std::size_t, std::size_t> final_after(std::size_t node) const;
  std::vector<GradientSlice> gradient_slices() const;

  /// Parameters, statistics, then the optimizer's state slot by slot.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorPlace& place(std::size_t tensor) const { return places_[tensor]; }
  Result<void> check_size(std::size_t tensor, std::size_t count) const;
  /// Those of a parameter or a statistic; state starts as zeros.
  void first_values(std::size_t tensor, std::uint64_t seed, std::span<float> out) const;

  /// Goes on from `start` with everything above.
  std::uint64_t hash(std::uint64_t start) const;

 private:
  std::vector<std::size_t> backward_order() const;
  void cut_buckets(const std::vector<std::size_t>& order, std::size_t bucket_bytes);
  void divide(const std::vector<std::size_t>& order, const StatePart& part);
  std::size_t nearest_cut(const std::vector<std::size_t>& order, std::size_t wanted) const;
  std::vector<TensorBox> held(std::size_t parameter) const;
  void list_tensors(const std::vector<std::string_view>& state);
  void list(TensorInfo info, TensorPlace place);

  std::vector<ParameterSpec> parameters_;
  std::vector<StatisticSpec> statistics_;
  std::vector<std::size_t> statistic_offsets_;
  std::vector<Bucket> slices_, buckets_;
  std::vector<std::size_t> bucket_nodes_;
  std::vector<OwnedRange> owned_;
  std::vector<std::vector<std::size_t>> borders_;
  std::vector<TensorInfo> tensors_;
  std::vector<TensorPlace> places_;
  std::size_t floats_ = 0, statistic_floats_ = 0, state_floats_ = 0;
};

/// Of everything that ranks must agree on before they sum gradients: operators, shapes, places, precision.
std::uint64_t plan_hash(const Graph& graph, const EngineOptions& options, const StateLayout& layout);

}  // namespace dlrun::runtime
