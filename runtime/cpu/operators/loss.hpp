// Loss: what ends a plan, and what the engine asks for labels and results.
#pragma once

#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

class Loss : public Operator {
 public:
  std::span<std::int32_t> labels() const;
  const BatchResult& result() const { return result_; }
  std::span<const float> scores() const { return {scores_.value->floats(), scores_.elements}; }

  // In training the backward pass does both at once.
  void forward(const Run& run) override;
  void backward_data(const Run& run) override;

 protected:
  explicit Loss(Plan& plan);
  // The result, and the gradient where that is wanted.
  virtual BatchResult score(kernels::View gradient) = 0;

  Tensor& scores_;
  std::int64_t batch_;

 private:
  Buffer* labels_;
  std::size_t reader_ = 0;  // several losses may have the same scores
  BatchResult result_;
};

}  // namespace dlrun::runtime
