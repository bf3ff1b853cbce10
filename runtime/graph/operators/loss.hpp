// Loss: the last operator of a plan, and the one that the engine asks for results.
#pragma once

#include "runtime/graph/plan.hpp"

namespace dlrun::runtime {

class Loss final : public Operator {
 public:
  Loss(Plan& plan, const op::SoftmaxCrossEntropy& spec);
  void forward(const Run& run) override;
  void backward_data(const Run& run) override;
  std::span<std::int32_t> labels() const;
  const BatchResult& result() const { return result_; }

 private:
  void score(kernels::View gradient);

  Tensor& scores_;
  std::int64_t batch_;
  Buffer* labels_;
  float weight_;
  BatchResult result_;
};

}  // namespace dlrun::runtime
