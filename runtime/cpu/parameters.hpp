// Parameters: every named tensor of a model and the arenas they lie in. Values, gradients and momentum have
// the same offsets, in the order in which gradients become final in backward, so that a bucket is a slice and
// the optimizer one pass. Inside an arena a tensor has the layout in which oneDNN writes its gradient; other
// layouts and precisions that operators want to read are copies, refreshed after each update. People and
// checkpoints see plain layouts only (read, write).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cpu/onednn.hpp"
#include "runtime/engine/arena.hpp"

namespace dlrun::runtime {

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t node = 0;  // the operator that owns it
  float bound = 0;       // starts uniform in [-bound, bound) ...
  float constant = 0;    // ... plus this
  Desc layout = {};      // in the arenas; one-dimensional or any that oneDNN can reorder
  // Where `layout` is of a matrix whose columns are an image in its own layout: that matrix plain, seen as
  // `shape`.
  std::optional<Desc> columns = {};
  Buffer value = {}, gradient = {}, momentum = {};
  Buffer square = {};  // Adam's mean of the gradient's squares
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
  void initialise(std::uint64_t seed, const dnnl::engine& engine);
  void refresh(const dnnl::stream& stream);  // the copies
  // Once the operator `node` has left its gradients: adds those of operators that share its parameters.
  void gather(std::size_t node, const dnnl::stream& stream);
  void apply(const SgdStep& sgd, const dnnl::stream& stream);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  Result<void> read(std::size_t index, std::span<float> out, const dnnl::engine& engine) const;
  Result<void> write(std::size_t index, std::span<const float> values, const dnnl::engine& engine);

  std::span<float> gradients() const { return {reinterpret_cast<float*>(gradients_.data()), floats_}; }
  std::span<const Bucket> buckets() const { return buckets_; }
  // The buckets that become final with the gradients of `node`: [first, last).
  std::pair<std::size_t, std::size_t> final_after(std::size_t node) const;
  std::span<float> spare_slots() const { return gradients().last(kSpareSlots); }
  std::vector<GradientSlice> gradient_slices() const;  // in the order of the arena
  std::size_t memory_bytes() const;
  std::uint64_t hash(std::uint64_t start) const;

 private:
  static constexpr std::size_t kSpareSlots = 16;
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
  struct Named {  // where tensors_[i] lies
    const Parameter* parameter;
    const Buffer* value;
    Desc layout;
  };

  void list_tensors();
  Result<std::byte*> room(std::size_t bytes) const;
  void update(Parameter& parameter, const SgdStep& sgd);
  void update_by_adam(Parameter& parameter, const SgdStep& step);
  void list_momenta();
  void refresh(Copy& copy, const dnnl::stream& stream);
  void cut_buckets(std::size_t bucket_bytes, const std::vector<Parameter*>& order);

  std::deque<Parameter> parameters_;
  std::deque<Statistic> statistics_;
  std::deque<Copy> copies_;
  std::vector<Part> parts_;
  std::optional<AdamRule> adam_;
  HugeBuffer values_, gradients_, momenta_, squares_, extras_;
  mutable HugeBuffer room_;  // for conversions through a matrix
  std::size_t floats_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_nodes_;  // the node whose gradients complete each bucket
  std::vector<TensorInfo> tensors_;
  std::vector<Named> named_;
  bool stale_ = true;  // the copies are older than the values
};

}  // namespace dlrun::runtime
