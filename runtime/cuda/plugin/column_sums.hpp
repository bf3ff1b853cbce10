// Sums over the rows of a matrix, column by column, in a fixed order whatever the card: the gradients of
// biases, and of the scales of norms. A block adds its share of the rows, and a second kernel the blocks'
// sums.
#pragma once

#include "runtime/cuda/plugin/pack.hpp"

namespace dlrun::cuda {

constexpr unsigned kColumnSplits = 384;  // shares of the rows

class ColumnSums {
 public:
  // `sums`: how many of each column.
  ColumnSums(Device& device, std::int64_t columns, int sums = 1)
      : columns_(columns),
        sums_(sums),
        partial_(static_cast<float*>(device.memory.device(static_cast<std::size_t>(columns) *
                                                              static_cast<std::size_t>(sums) * kColumnSplits *
                                                              sizeof(float),
                                                          "sums of columns"))) {}

  // to (+)= the sum of the rows of `of`, which has the plan's type.
  void sum(Device& device, const void* of, std::int64_t rows, float* to, bool adds) const;
  // For sums of something else: [sum][split][column], to be filled, and then what is made of them.
  float* partial() const { return partial_; }
  void finish(Device& device, int which, float* to, bool adds) const;

 private:
  std::int64_t columns_;
  int sums_;
  float* partial_;
};

#ifdef __CUDACC__
// A block has 32 packs of columns and its share of the rows, one row in eight per warp. `term(pack, row,
// column, sums)` adds a row's part to sums[which][number of the pack].
template <int Sums, class P, class Term>
__global__ void __launch_bounds__(256)
    column_sums(float* partial, std::int64_t rows, std::int64_t columns, Term term) {
  constexpr int V = P::kSize;
  __shared__ float room[8][32 * V];
  const std::int64_t column = (blockIdx.x * 32 + threadIdx.x) * static_cast<std::int64_t>(V);
  const std::int64_t share = (rows + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share;
  const std::int64_t end = first + share < rows ? first + share : rows;
  float sums[Sums][V] = {};
  if (column < columns)
    for (std::int64_t row = first + threadIdx.y; row < end; row += 8) term(row, column, sums);
  for (int which = 0; which < Sums; ++which) {
    for (int v = 0; v < V; ++v) room[threadIdx.y][threadIdx.x * V + v] = sums[which][v];
    __syncthreads();
    for (int v = static_cast<int>(threadIdx.y); v < V; v += 8) {
      float sum = 0;
      for (int y = 0; y < 8; ++y) sum += room[y][threadIdx.x * V + v];
      if (column + v < columns)
        partial[(static_cast<std::int64_t>(which) * gridDim.y + blockIdx.y) * columns + column + v] = sum;
    }
    __syncthreads();
  }
}

// Launches it over all rows.
template <int Sums, class P, class Term>
void sum_columns(Device& device, float* partial, std::int64_t rows, std::int64_t columns, Term term) {
  const dim3 grid(static_cast<unsigned>((columns + 32 * P::kSize - 1) / (32 * P::kSize)), kColumnSplits);
  column_sums<Sums, P><<<grid, dim3(32, 8), 0, device.stream>>>(partial, rows, columns, term);
  check(cudaGetLastError(), "sums of columns");
}
#endif

}  // namespace dlrun::cuda
