// Normalization of rows: what layer norm and RMS norm share. A warp has a row; the features of a lane stay in
// registers where they are few, else the row is read again. Backward sums the gradients of scale and shift by
// columns.
#pragma once

#include "runtime/cuda/plugin/column_sums.hpp"

namespace dlrun::cuda {

// Layer norm subtracts the mean of a row; RMS norm takes it for 0.
enum class Centre { mean, zero };

OperatorPtr make_row_norm(Device& device, const DlrunCudaNode& node, std::size_t index, Centre centre,
                          float epsilon);

}  // namespace dlrun::cuda
