// Parameters: every named tensor of a model and the arenas they lie in, at the offsets that StateLayout gives
// them on any device. Inside an arena a tensor has the layout in which oneDNN writes its gradient; other
// layouts and precisions that operators want to read are copies, refreshed after each update. People and
// checkpoints see plain layouts only (read, write).
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/tensor_part.hpp"
#include "runtime/cpu/onednn.hpp"
#include "runtime/cpu/plain_layout.hpp"
#include "runtime/engine/arena.hpp"
#include "runtime/engine/state_layout.hpp"

namespace dlrun::runtime {

// Who writes a gradient first: its owner, or an operator that shares the parameter and is awaited or there.
// The owner then adds to what is written.
enum class GradientStart { own, awaited, written };

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  std::optional<TensorPart> of = {};  // the whole one, where this is a part
  std::size_t node = 0;               // the operator that owns it
  float bound = 0;                    // starts uniform in [-bound, bound) ...
  float constant = 0;                 // ... plus this
  Desc layout = {};                   // in the arenas; one-dimensional or any that oneDNN can reorder
  // Where `layout` is of a matrix whose columns are an image in its own layout: that matrix plain, seen as
  // `shape`.
  std::optional<Desc> columns = {};
  Buffer value = {}, gradient = {};
  std::array<Buffer, kMaxStateArenas> state = {};  // of the optimizer, then the average: of `owned` alone
  OwnedRange owned = {};                           // what this rank has of the state, and updates
  std::optional<PlainPath> owned_path = {};        // where that is not all
  bool frozen = false;                             // stays as it is
  bool decays = true;                              // has the step's weight decay
  GradientStart gradient_start = GradientStart::own;
  Weights weights = Weights::own;              // or tied
  GradientOf gradient_of = GradientOf::whole;  // or term
};

struct Statistic {
  std::string name;
  float constant = 0;
  std::int64_t elements = 0;
  Buffer value;
};

class Parameters {
 public:
  // Declared in the order of the forward pass; the pointers stay good.
  Parameter* declare(Parameter parameter);
  Statistic* declare(Statistic statistic);
  // Those that an operator before declared.
  Parameter* find_parameter(const std::string& name);
  Statistic* find_statistic(const std::string& name);
  // `gradient` is a part of the parameter's, from an operator that shares it.
  void add_to_gradient(Parameter* parameter, Buffer* gradient, const Desc& layout,
                       const dnnl::engine& engine);
  // The parameter's value in that layout and type: itself, or a copy kept fresh.
  Buffer* as(Parameter* parameter, const Desc& wanted);

  Result<void> lay_out(const EngineOptions& options);
  Result<void> initialise(std::uint64_t seed, const dnnl::engine& engine);
  void refresh(const dnnl::stream& stream);  // the copies
  // Once the operator `node` has left its gradients: adds those of operators that share its parameters.
  void accumulate_shared_gradients(std::size_t node, const dnnl::stream& stream);
  // Once they are whole: a frozen parameter has no part in the norm of all gradients.
  void clear_frozen_gradients(std::size_t node);
  void apply(const UpdateStep& step, const dnnl::stream& stream);
  void swap_averages();
  // As ShardedEngine has them.
  std::vector<double> measure(const UpdateStep& step);
  void update(const UpdateStep& step, std::size_t bucket, std::span<const double> sums);
  std::span<float> values() const { return {reinterpret_cast<float*>(values_.data()), layout_.floats()}; }
  void values_changed() { stale_ = true; }
  // One tensor of it of all parameters, where it is not divided.
  std::span<float> state(std::size_t slot) const {
    return {reinterpret_cast<float*>(state_[slot].data()), layout_.state_floats()};
  }
  std::size_t state_bytes() const;

  const StateLayout& layout() const { return layout_; }
  Result<void> read(std::size_t index, std::span<float> out, const dnnl::engine& engine) const;
  Result<void> write(std::size_t index, std::span<const float> values, const dnnl::engine& engine);

  std::span<float> gradients() const {
    return {reinterpret_cast<float*>(gradients_.data()), layout_.floats()};
  }
  std::span<float> spare_slots() const { return gradients().last(kSpareSlots); }
  std::size_t memory_bytes() const;

 private:
  struct Copy {
    Parameter* from;
    Desc layout;
    Buffer value;
    std::size_t interleaved_row;  // floats in a row where the copy is rows interleaved by two; else 0
    Call refresh;
  };
  struct Part {  // of a gradient
    const Parameter* of;
    Call add;
  };

  // The factors of an update, by parameter.
  struct UpdateFactors {
    Factors with_decay, without_decay;
  };
  UpdateFactors factors_of(const UpdateStep& step) const;
  Factors factors_of(const Parameter& parameter, const UpdateFactors& all) const;
  void declare_layout();
  void place_owned(Parameter& parameter, std::size_t index) const;
  PlainPath whole_path(const Parameter& parameter) const;
  Result<void> make_arenas();
  Result<void> place_copies();
  PlainPath path_of(std::size_t tensor) const;
  std::byte* data_of(std::size_t tensor) const;
  Result<std::byte*> workspace(std::size_t bytes) const;
  Copy* interleaved_copy_of(const Parameter& parameter);
  UpdateRange range_of(Parameter& parameter, std::size_t begin, std::size_t end) const;
  std::size_t owned_end(const Parameter& parameter) const;
  TensorSums measure(Parameter& parameter, const Factors& factors) const;
  void update(Parameter& parameter, const Factors& factors);
  void average(Parameter& parameter, std::size_t begin, std::size_t end) const;
  void refresh(Copy& copy, const dnnl::stream& stream);

  std::deque<Parameter> parameters_;
  std::deque<Statistic> statistics_;
  std::deque<Copy> copies_;
  std::vector<Part> parts_;
  std::vector<Parameter*> frozen_;
  std::optional<Optimizer> optimizer_;
  std::optional<float> average_;  // its decay
  float kept_average_ = 0;        // of this update
  StateLayout layout_;
  HugeBuffer values_, gradients_, extras_;
  std::vector<HugeBuffer> state_;  // of the optimizer, slot by slot, and the average
  mutable HugeBuffer workspace_;   // for conversions through a matrix
  bool stale_ = true;              // the copies are older than the values
};

}  // namespace dlrun::runtime
