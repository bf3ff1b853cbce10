// The kernels of row_norm.cu: a warp has a row. Backward is one pass where a row stays in registers: the
// gradient of the rows, the sums over them that are the gradients of scale and shift, and those of the result
// where the layer before wants them for its bias.
#pragma once

#include <cuda_pipeline.h>

#include "runtime/cuda/plugin/column_sums.hpp"
#include "runtime/cuda/plugin/row_norm.hpp"
#include "runtime/cuda/plugin/warp.hpp"

namespace dlrun::cuda {

constexpr int kRowWarps = 8;  // of a block

// Neighbouring numbers that all rows share, four at a time where they divide so.
template <int V>
struct Shared {
  float of[V];
  __device__ Shared(const float* from, float otherwise) {
    if (from == nullptr) {
      for (int v = 0; v < V; ++v) of[v] = otherwise;
    } else if constexpr (V % 4 == 0) {
      for (int v = 0; v < V; v += 4) {
        const float4 four = *reinterpret_cast<const float4*>(from + v);
        of[v] = four.x, of[v + 1] = four.y, of[v + 2] = four.z, of[v + 3] = four.w;
      }
    } else {
      for (int v = 0; v < V; ++v) of[v] = from[v];
    }
  }
};

struct Row {
  std::int64_t features;
  float epsilon;
};

// The packs of a row that a lane has: N of them in registers, or with N of 0 any number, read again each
// time.
template <class P, int N>
class LanePacks {
 public:
  __device__ LanePacks(const P* row, int packs) : row_(row), packs_(packs) {
    if constexpr (N > 0) {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (at(k) < packs) kept_[k] = row[at(k)];
    }
  }
  // body(which of the lane's packs, its number in the row, the pack)
  template <class Body>
  __device__ void each(const Body& body) const {
    if constexpr (N > 0) {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (at(k) < packs_) body(k, at(k), kept_[k]);
    } else {
      for (int k = 0; at(k) < packs_; ++k) body(k, at(k), row_[at(k)]);
    }
  }
  __device__ P get(int k) const {
    if constexpr (N > 0) return kept_[k];
    return row_[at(k)];
  }

 private:
  __device__ static int at(int k) {
    return static_cast<int>(threadIdx.x) + 32 * k;
  }
  const P* row_;
  int packs_;
  P kept_[N > 0 ? N : 1];
};

// figures: mean and 1 / deviation of each row.
template <Centre C, int N, class P>
__global__ void forward_rows(P* to, float2* figures, const P* from, const float* scale, const float* shift,
                             std::int64_t rows, Row of) {
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kRowWarps) + threadIdx.y;
  if (row >= rows) return;
  const int packs = static_cast<int>(of.features / P::kSize);
  const LanePacks<P, N> mine(from + row * packs, packs);
  P* const out = to + row * packs;
  const float count = static_cast<float>(of.features);
  float mean = 0;
  if (C == Centre::mean) {
    float sum = 0;
    mine.each([&](int, int, const P& all) {
      for (int v = 0; v < P::kSize; ++v) sum += number(all.of[v]);
    });
    mean = sum_of_warp(sum) / count;
  }
  float squares = 0;
  mine.each([&](int, int, const P& all) {
    for (int v = 0; v < P::kSize; ++v) {
      const float off = number(all.of[v]) - mean;
      squares += off * off;
    }
  });
  const float factor = rsqrtf(sum_of_warp(squares) / count + of.epsilon);
  mine.each([&](int, int i, const P& all) {
    constexpr int V = P::kSize;
    const Shared<V> by(scale + i * V, 1), plus(shift == nullptr ? nullptr : shift + i * V, 0);
    P normed;
    for (int v = 0; v < V; ++v)
      put(normed.of[v], (number(all.of[v]) - mean) * factor * by.of[v] + plus.of[v]);
    out[i] = normed;
  });
  if (threadIdx.x == 0) figures[row] = make_float2(mean, factor);
}

// With g = dy scale and n the normalized row: dx = factor (g - mean(g) - n mean(g n)).
template <Centre C, int N, class P>
__global__ void backward_rows(P* to, const P* grad, const P* from, const float2* figures, const float* scale,
                              std::int64_t rows, std::int64_t features, bool adds) {
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kRowWarps) + threadIdx.y;
  if (row >= rows) return;
  const int packs = static_cast<int>(features / P::kSize);
  const LanePacks<P, N> mine(from + row * packs, packs), above(grad + row * packs, packs);
  P* const out = to + row * packs;
  const float2 figure = figures[row];
  float sum = 0, along = 0;
  const auto normed = [&](const P& x, int v) { return (number(x.of[v]) - figure.x) * figure.y; };
  mine.each([&](int k, int i, const P& x) {
    const P dy = above.get(k);
    const Shared<P::kSize> by(scale + i * P::kSize, 1);
    for (int v = 0; v < P::kSize; ++v) {
      const float g = number(dy.of[v]) * by.of[v];
      sum += g;
      along += g * normed(x, v);
    }
  });
  const float count = static_cast<float>(features);
  const float mean = C == Centre::mean ? sum_of_warp(sum) / count : 0.0F;
  along = sum_of_warp(along) / count;
  mine.each([&](int k, int i, const P& x) {
    const P dy = above.get(k);
    const Shared<P::kSize> by(scale + i * P::kSize, 1);
    P all{};
    if (adds) all = out[i];
    for (int v = 0; v < P::kSize; ++v)
      put(all.of[v], (adds ? number(all.of[v]) : 0.0F) +
                         figure.y * (number(dy.of[v]) * by.of[v] - mean - normed(x, v) * along));
    out[i] = all;
  });
}

constexpr int kSumWarps = 4;  // of a block of backward_and_sum()

// What backward_and_sum() leaves: [sum][block][column]; of_result: null where nobody wants it.
struct RowSums {
  float *of_parameters, *of_result;
};

// The rows that a warp reads: input, gradient, and what the result is added to. Where packs are of 16 bytes,
// the next ones are on their way to shared memory while these are used; a lane reads what it copied itself.
template <int N, class P>
class WarpRows {
 public:
  static constexpr bool kAhead = sizeof(P) == 16 && N <= 4;
  static constexpr std::size_t bytes() { return kAhead ? kSumWarps * 2 * 3 * N * 32 * sizeof(P) : 0; }

  __device__ WarpRows(P* room, int packs) : room_(room + threadIdx.y * 2 * 3 * N * 32), packs_(packs) {}
  __device__ void fetch(int stage, const P* from, const P* grad, const P* before) const {
    if constexpr (kAhead) {
      const P* const rows[] = {from, grad, before};
      for (int which = 0; which < 3; ++which)
        for (int k = 0; k < N; ++k)
          if (rows[which] != nullptr && at(k) < packs_)
            __pipeline_memcpy_async(place(stage, which, k), rows[which] + at(k), sizeof(P));
    }
  }
  __device__ P* place(int stage, int which, int k) const {
    return room_ + ((stage * 3 + which) * N + k) * 32 + threadIdx.x;
  }
  __device__ static int at(int k) { return static_cast<int>(threadIdx.x) + 32 * k; }

 private:
  P* room_;
  int packs_;
};

// The sums of a block's warps, a column a thread at a time.
template <int N, class P>
__device__ void add_warps(float* to, const float (&sums)[N][P::kSize], int packs) {
  constexpr int V = P::kSize;
  __shared__ float room[kSumWarps][32 * V];
  for (int k = 0; k < N; ++k) {
    __syncthreads();
    for (int v = 0; v < V; ++v) room[threadIdx.y][threadIdx.x * V + v] = sums[k][v];
    __syncthreads();
    if (static_cast<int>(threadIdx.x) + 32 * k >= packs) continue;
    for (int v = static_cast<int>(threadIdx.y); v < V; v += kSumWarps) {
      float sum = 0;
      for (int y = 0; y < kSumWarps; ++y) sum += room[y][threadIdx.x * V + v];
      to[(32 * k + static_cast<int>(threadIdx.x)) * V + v] = sum;
    }
  }
}

// backward_rows() of a share of the rows for each of kColumnSplits blocks, and the sums over them: of dy n,
// of dy where S is 2, and of the result where R is 1.
template <Centre C, int N, int S, int R, class P>
__global__ void __launch_bounds__(32 * kSumWarps, 3)
    backward_and_sum(P* to, RowSums sums, const P* grad, const P* from, const float2* figures,
                     const float* scale, std::int64_t rows, std::int64_t features, bool adds) {
  constexpr int V = P::kSize;
  extern __shared__ uint4 memory[];
  const int packs = static_cast<int>(features / V);
  const float count = static_cast<float>(features);
  const std::int64_t share = (rows + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
  const std::int64_t end = first + share < rows ? first + share : rows;
  using Rows = WarpRows<N, P>;
  const Rows mine(reinterpret_cast<P*>(memory), packs);
  const auto fetch = [&](std::int64_t row, int stage) {
    if (row < end)
      mine.fetch(stage, from + row * packs, grad + row * packs, adds ? to + row * packs : nullptr);
    if constexpr (Rows::kAhead) __pipeline_commit();
  };
  float along_norm[N][V] = {}, plain[S == 2 ? N : 1][V] = {}, result[R == 1 ? N : 1][V] = {};
  int stage = 0;
  fetch(first + threadIdx.y, stage);
  for (std::int64_t row = first + threadIdx.y; row < end; row += kSumWarps, stage ^= 1) {
    fetch(row + kSumWarps, stage ^ 1);
    if constexpr (Rows::kAhead) __pipeline_wait_prior(1);
    P* const out = to + row * packs;
    // body(which of the lane's packs, its number in the row)
    const auto each = [&](const auto& body) {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (Rows::at(k) < packs) body(k, Rows::at(k));
    };
    const auto pack = [&](int which, int k, int i) {
      if constexpr (Rows::kAhead) return *mine.place(stage, which, k);
      return (which == 0 ? from + row * packs : which == 1 ? grad + row * packs : out)[i];
    };
    const float2 figure = figures[row];
    float sum = 0, along = 0;
    const auto normed = [&](const P& x, int v) { return (number(x.of[v]) - figure.x) * figure.y; };
    each([&](int k, int i) {
      const P x = pack(0, k, i), dy = pack(1, k, i);
      const Shared<V> by(scale + i * V, 1);
      for (int v = 0; v < V; ++v) {
        const float of = number(dy.of[v]), n = normed(x, v), g = of * by.of[v];
        along_norm[k][v] += of * n;
        if (S == 2) plain[k][v] += of;
        sum += g;
        along += g * n;
      }
    });
    const float mean = C == Centre::mean ? sum_of_warp(sum) / count : 0.0F;
    along = sum_of_warp(along) / count;
    each([&](int k, int i) {
      const P x = pack(0, k, i), dy = pack(1, k, i);
      const Shared<V> by(scale + i * V, 1);
      P all{};
      if (adds) all = pack(2, k, i);
      for (int v = 0; v < V; ++v) {
        put(all.of[v], (adds ? number(all.of[v]) : 0.0F) +
                           figure.y * (number(dy.of[v]) * by.of[v] - mean - normed(x, v) * along));
        if (R == 1) result[k][v] += number(all.of[v]);
      }
      out[i] = all;
    });
  }
  const std::int64_t at = blockIdx.x * features, step = gridDim.x * features;
  add_warps<N, P>(sums.of_parameters + at, along_norm, packs);
  if constexpr (S == 2) add_warps<N, P>(sums.of_parameters + step + at, plain, packs);
  if constexpr (R == 1) add_warps<N, P>(sums.of_result + at, result, packs);
}

}  // namespace dlrun::cuda
