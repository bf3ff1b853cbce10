// See loss_rows.hpp. Sums are one block's work.
#include "runtime/cuda/plugin/loss_rows.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kSumThreads = 1024;

// total[loss_at] grows by `share` of the sum of the losses; total[1], and from total[3] on what else a row
// has, by that of the other numbers, where those count.
__global__ void total_of(double* total, const double* rows, int numbers, std::int64_t count, double share,
                         int loss_at, bool answers) {
  __shared__ double room[kSumThreads];
  for (int which = 0; which < (answers ? numbers : 1); ++which) {
    double sum = 0;
#pragma unroll 8
    for (std::int64_t row = threadIdx.x; row < count; row += kSumThreads) sum += rows[numbers * row + which];
    room[threadIdx.x] = sum;
    __syncthreads();
    for (int half = kSumThreads / 2; half > 0; half /= 2) {
      if (static_cast<int>(threadIdx.x) < half) room[threadIdx.x] += room[threadIdx.x + half];
      __syncthreads();
    }
    const int at = which == 0 ? loss_at : which == 1 ? 1 : which + 1;
    if (threadIdx.x == 0) total[at] += which == 0 ? room[0] * share : room[0];
    __syncthreads();
  }
}

}  // namespace

LossRows::LossRows(Device& device, const DlrunCudaNode& node, std::int64_t rows, std::int64_t per_row,
                   int numbers)
    : where_(node.report),
      count_(rows),
      per_row_(per_row),
      numbers_(numbers),
      rows_(static_cast<double*>(device.memory.device(
          static_cast<std::size_t>(rows) * static_cast<std::size_t>(numbers) * sizeof(double), "a loss"))) {}

LossRows::GradientRows LossRows::grad(Tensor& scores, Mode mode) {
  if (mode != Mode::train || scores.gradient == nullptr) return {nullptr, false};
  return {scores.gradient, claim(scores)};
}

void LossRows::report(Device& device) const {
  if (where_ == DLRUN_CUDA_UNREPORTED) return;
  const bool of_generator = where_ == DLRUN_CUDA_OF_GENERATOR;
  total_of<<<1, kSumThreads, 0, device.stream>>>(device.result, rows_, numbers_, count_,
                                                 1.0 / static_cast<double>(per_row_), of_generator ? 2 : 0,
                                                 !of_generator);
  check(cudaGetLastError(), "a loss");
}

}  // namespace dlrun::cuda
