// Plan: everything fixed about one compiled graph: its tensors with their layouts, the arena of activations,
// the parameters. While operators are made it hands out buffers and notes when each is used; lay_out() then
// gives them addresses. What it does not do: run (cpu_engine.cpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cpu/group_calls.hpp"
#include "runtime/cpu/kernels/kernels.hpp"
#include "runtime/cpu/operator.hpp"
#include "runtime/cpu/parameters.hpp"
#include "runtime/engine/arena.hpp"

namespace dlrun::runtime {

// An activation. Its value and its gradients have the same layout; the gradients have the plan's precision,
// the value too, except that scores are always f32.
struct Tensor {
  Desc desc;
  Precision precision = Precision::f32;
  Precision gradient_precision = Precision::f32;
  std::size_t elements = 0;  // with padding
  Extents extents{};
  Buffer* value = nullptr;
  Buffer* again = nullptr;  // where backward finds a value that is not kept until then (Operator::restore)
  std::vector<Buffer*> gradients;  // one per reader; the first also takes their sum; none: nobody needs it
  std::size_t readers_made = 0;
  // False: the engine sets the gradient to 0 where the value is not positive, before the producer's backward.
  bool masked_by_producer = true;
  Activation activation = Activation::relu;  // what the engine undoes where it is not
  // Set by producers whose backward leaves the gradient as it is, or does not read the value: a reader may
  // have its own gradient, or its own value, in that place.
  bool gradient_only_read = false, value_not_read = false;
  float slope = 0;  // of a leaky ReLU

  bool needs_gradient() const { return !gradients.empty(); }
  Desc gradient_desc() const;
  Buffer* value_in_backward() const { return again == nullptr ? value : again; }
  kernels::View view() const { return {value->data, precision}; }
  kernels::ConstView const_view() const { return {value->data, precision}; }
  kernels::View gradient(std::size_t reader = 0) const {
    return {gradients[reader]->data, gradient_precision};
  }
  kernels::ConstView const_gradient(std::size_t reader = 0) const {
    return {gradients[reader]->data, gradient_precision};
  }
};

// Sets what the engine does to the gradient of an output before the backward of its producer, which fused
// `activation`.
inline void set_activation_backward(Tensor& out, Activation activation, float slope) {
  out.masked_by_producer = activation == Activation::none;
  if (activation != Activation::none) out.activation = activation;
  out.slope = slope;
}

// A value or a gradient as a primitive reads it: as it lies, or copied into a layout that the primitive is
// fast with. An image of three channels between two networks is what needs that.
struct Source {
  Desc desc;
  Buffer* buffer = nullptr;
  Call convert = {};  // where it is a copy
};

enum class Pass { forward, backward };

class Plan {
 public:
  Plan(Graph graph, const EngineOptions& options);

  const Graph& graph() const { return graph_; }
  const EngineOptions& options() const { return options_; }
  const dnnl::engine& engine() const { return engine_; }
  Layout layout() const { return layout_; }
  std::int64_t batch() const { return options_.batch; }
  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  GroupCalls& group_calls() { return group_calls_; }
  const GroupCalls& group_calls() const { return group_calls_; }

  // Makes the operators; each sees the node it is made for.
  std::vector<OperatorPtr> make_operators();
  Result<void> lay_out();
  std::size_t memory_bytes() const { return arena_.size() + parameters_.memory_bytes(); }
  Tensor& tensor(std::size_t node) { return *tensors_[node]; }
  // The batch's labels, which all losses share; made when the first of them asks. One a row, or one for each
  // of its tokens.
  Buffer* labels();
  std::int64_t labels_per_row() const;
  // A second label of each row, then as many weights of the first; null where labels are not mixed.
  Buffer* mixed_labels();
  // So many targets of each row; made when the first loss asks.
  Buffer* targets(std::size_t width);
  std::span<float> target_numbers() const {
    return {targets_ == nullptr ? nullptr : targets_->floats(), target_count_};
  }
  // What a sample of the model's data is, and its shape.
  SampleKind input_kind() const;
  Shape shape_of_rows() const;
  // What backward reads of the forward pass, and what is kept from step to step.
  std::vector<std::span<std::byte>> needed_by_backward() {
    return arena_.needed_across(static_cast<int>(graph_.nodes.size()));
  }
  // What the trainer fills.
  Buffer* rows() const { return rows_; }
  void set_rows(Buffer* rows) { rows_ = rows; }

  // For operators in the making.
  std::size_t index() const { return index_; }
  const Node& node() const { return graph_.nodes[index_]; }
  // Which part of its layer this node is; unset where it is whole.
  const std::optional<NodePart>& part() const { return node().part; }
  // Of a sum over a tensor group, what all ranks would add is added by one of them.
  bool adds_whole_terms() const {
    return !part() || part()->part == 0 ||
           (part()->form != SplitForm::rows && part()->form != SplitForm::vocabulary);
  }
  // Whether this node sees a slice of the batch's positions.
  bool has_slice() const { return part() && part()->form == SplitForm::positions; }
  const Shape& input_shape(std::size_t which = 0) const;
  Tensor& input(std::size_t which = 0) { return *tensors_[node().inputs[which].get()]; }
  Tensor& output() { return *tensors_[index_]; }
  // The reader number under which this operator delivers the gradient of an input; input().needs_gradient()
  // must hold. Once for each input.
  std::size_t claim_gradient(std::size_t which = 0) { return input(which).readers_made++; }
  // Whether that input of the node is made again before the node's backward.
  bool is_restored_for(std::size_t node, Value input) const;
  bool is_only_reader(std::size_t which = 0) const;
  const std::vector<std::size_t>& readers_of_output() const { return readers_[index_]; }
  // A parameter of this node by its part of the traits' rules (".weight"), or the one that the node shares
  // with one before it. `columns`: see Parameter.
  Parameter* parameter(std::string_view part, const Desc& layout, const std::optional<Desc>& columns = {});
  Statistic* statistic(std::string_view part);
  // Floating-point operations of this node's forward pass, where it is products of weights and values.
  double operations() const;
  // The parameter's gradient itself, for an operator that shares it and comes first in backward: it writes
  // what the owner then adds to. Null where another operator does so, or the owner does not add.
  static Buffer* first_gradient_of(Parameter* parameter);
  // Where this node's part of the parameter's gradient goes, in this layout.
  Buffer* gradient_of(Parameter* parameter, const Desc& layout);
  void set_layout(Tensor& tensor, const Desc& desc, Precision precision, const Extents& extents);

  void use(Buffer* buffer, Pass pass);
  void keep(Buffer* buffer);  // through the whole step and between steps
  // `buffer` lies in the place of `target`: for operators that work in place.
  static void share(Buffer* buffer, Buffer* target) { ActivationArena::share(buffer, target); }
  Buffer* buffer(std::size_t bytes) { return arena_.add(bytes); }
  Buffer* scratch(std::size_t bytes, Pass pass);
  // `buffer`, which lies as `has` says, as `wanted`; a copy stays until the operator's backward is done.
  Source source(Buffer* buffer, const Desc& has, const Desc& wanted, Pass from);
  // Scratch memory of a primitive, as an argument for Call.
  Call::Argument scratchpad(const Desc& desc, Pass pass);

 private:
  void make_tensor();
  bool has_parameters_before(std::size_t node) const;
  int time_of(std::size_t node, Pass pass) const;

  Graph graph_;
  EngineOptions options_;
  dnnl::engine engine_;
  Layout layout_;
  std::size_t index_ = 0;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  Buffer* rows_ = nullptr;
  Buffer* labels_ = nullptr;
  Buffer* mixed_labels_ = nullptr;
  Buffer* targets_ = nullptr;
  std::size_t target_count_ = 0;
  ActivationArena arena_;
  Parameters parameters_;
  GroupCalls group_calls_;
};

}  // namespace dlrun::runtime
