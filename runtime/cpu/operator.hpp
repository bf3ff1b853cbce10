// Operator: one step of a compiled plan, with its shapes, layouts and buffers fixed. The engine calls forward
// in order, then for each operator from the last to the first backward_weights (its gradients are final after
// it and may travel) and backward_data. An operator finds the gradient of its output clean: summed over all
// readers, and zero where its fused ReLU was zero (see Tensor::masked_by_producer).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/cpu/onednn.hpp"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

class Plan;

enum class Mode { train, evaluate };

enum class RunningStatistics { follow, stay };

struct Run {
  const dnnl::stream& stream;
  Mode mode;
  std::uint64_t step;  // of the training; keys dropout
  int shard;           // of the global batch: keys dropout and noise, too
  RunningStatistics statistics = RunningStatistics::follow;
};

class Operator {
 public:
  virtual ~Operator() = default;
  virtual void forward(const Run& run) = 0;
  // Makes its value again, for the backward of those that read it (Tensor::again).
  virtual void restore(const Run&) {}
  virtual void backward_weights(const Run&) {}
  virtual void backward_data(const Run&) {}
  // For reports: floating-point operations of one forward pass, and which implementations were chosen.
  virtual double operations() const { return 0; }
  virtual std::string description() const { return {}; }
};

// One maker per operator, each in its own file of operators/. It reads plan.node(), plan.input(),
// plan.output().
using OperatorPtr = std::unique_ptr<Operator>;
#define DLRUN_DECLARE(TYPE, NAME) OperatorPtr make_operator(Plan& plan, const op::TYPE& spec);
DLRUN_OPERATORS(DLRUN_DECLARE)
#undef DLRUN_DECLARE

// The layout and type in which an operator would like to find the images; empty where it takes any.
std::optional<Desc> preferred_source(Plan& plan, const Node& node, const op::Convolution& spec);
template <class Spec>
std::optional<Desc> preferred_source(Plan&, const Node&, const Spec&) {
  return std::nullopt;
}

}  // namespace dlrun::runtime
