// See column_sums.hpp.
#include "runtime/cuda/plugin/column_sums.hpp"

namespace dlrun::cuda {
namespace {

constexpr unsigned kAddingWarps = 32;

// A block adds the splits of 32 columns: one in so many per warp, then the warps' sums.
__global__ void add_splits(float* to, const float* from, std::int64_t columns, bool adds) {
  __shared__ float room[kAddingWarps][32];
  const std::int64_t column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (column < columns)
    for (unsigned split = threadIdx.y; split < kColumnSplits; split += kAddingWarps)
      sum += from[split * columns + column];
  room[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (unsigned y = 1; y < kAddingWarps; ++y) sum += room[y][threadIdx.x];
  to[column] = (adds ? to[column] : 0.0F) + sum;
}

template <class P, class T>
void sum_plain(Device& device, float* partial, const T* from, std::int64_t rows, std::int64_t columns) {
  sum_columns<1, P>(device, partial, rows, columns,
                    [=] __device__(std::int64_t row, std::int64_t column, float(&sums)[1][P::kSize]) {
                      const P all = *reinterpret_cast<const P*>(from + row * columns + column);
                      for (int v = 0; v < P::kSize; ++v) sums[0][v] += number(all.of[v]);
                    });
}

}  // namespace

void ColumnSums::finish(Device& device, int which, float* to, bool adds) const {
  const float* const from = partial_ + which * static_cast<std::int64_t>(kColumnSplits) * columns_;
  add_splits<<<static_cast<unsigned>((columns_ + 31) / 32), dim3(32, kAddingWarps), 0, device.stream>>>(
      to, from, columns_, adds);
  check(cudaGetLastError(), "sums of columns");
}

void ColumnSums::sum(Device& device, const void* of, std::int64_t rows, float* to, bool adds) const {
  by_type(device, [&](auto zero) {
    using T = decltype(zero);
    by_pack<T>(columns_, [&](auto pack) {
      sum_plain<decltype(pack)>(device, partial_, static_cast<const T*>(of), rows, columns_);
    });
  });
  finish(device, 0, to, adds);
}

}  // namespace dlrun::cuda
