// Layer norm and RMS norm on CPUs: one operator with two rules.
#pragma once

#include <vector>

#include "runtime/cpu/kernels/norm.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

// Own kernels: rows are divided into as many parts as there are threads, and the parts' gradients of scale
// and shift are added in their order.
class Norm final : public Operator {
 public:
  Norm(Plan& plan, const kernels::NormRule& rule, Bias bias);
  void forward(const Run& run) override;
  void backward_weights(const Run& run) override;

 private:
  kernels::NormRows rows_of(std::int64_t part) const;
  void add_parts(float* to, std::int64_t which) const;
  float* part_of(std::int64_t part, std::int64_t which) const;

  kernels::NormRule rule_;
  Tensor& in_;
  Tensor& out_;
  std::int64_t rows_, parts_, row_floats_;
  Parameter* scale_ = nullptr;
  Parameter* shift_ = nullptr;
  Buffer* scale_gradient_ = nullptr;
  Buffer* shift_gradient_ = nullptr;
  Buffer* in_gradient_ = nullptr;
  Buffer *means_ = nullptr, *inverses_ = nullptr, *sums_ = nullptr;
};

}  // namespace dlrun::runtime
