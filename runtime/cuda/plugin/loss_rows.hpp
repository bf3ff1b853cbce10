// What every loss has: two numbers per row (its loss, and how many answers are right) and, of rows with
// targets, what is told of those as well; and their sums in one fixed order: the same bits in every run.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

class LossRows {
 public:
  // `per_row`: so many of the rows are one of the batch, whose loss is their mean.
  LossRows(Device& device, const DlrunCudaNode& node, std::int64_t rows, std::int64_t per_row = 1,
           int numbers = 2);
  double* data() const { return rows_; }
  // The gradient of the scores that is to be written, where it is wanted.
  struct GradientRows {
    void* array;
    bool adds;
  };
  static GradientRows grad(Tensor& scores, Mode mode);
  // Adds the sums to the step's result, where this loss is reported.
  void report(Device& device) const;

 private:
  DlrunCudaReport where_;
  std::int64_t count_, per_row_;
  int numbers_;
  double* rows_;
};

}  // namespace dlrun::cuda
