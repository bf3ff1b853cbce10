// Loss: what ends a plan, and what the engine asks for labels and results. ScoreLoss: one that reads scores
// which an operator before it gave.
#pragma once

#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

class Loss : public Operator {
 public:
  std::span<std::int32_t> labels() const;
  const BatchResult& result() const { return result_; }
  // Empty where they are never in memory together.
  virtual std::span<const float> scores() const { return {}; }
  virtual LanguageEngine* language() { return nullptr; }

 protected:
  explicit Loss(Plan& plan);
  BatchResult result_;

 private:
  Buffer* labels_;
  std::size_t count_;
};

class ScoreLoss : public Loss {
 public:
  std::span<const float> scores() const override { return {scores_.value->floats(), scores_.elements}; }

  // In training the backward pass does both at once.
  void forward(const Run& run) override;
  void backward_data(const Run& run) override;

 protected:
  explicit ScoreLoss(Plan& plan);
  // The result, and the gradient where that is wanted.
  virtual BatchResult score(kernels::View gradient) = 0;

  Tensor& scores_;
  std::int64_t batch_;

 private:
  std::size_t reader_ = 0;  // several losses may have the same scores
};

}  // namespace dlrun::runtime
