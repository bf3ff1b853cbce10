// The kernels of batch norm over NHWC. A thread keeps V channels and walks down the rows, so that what
// belongs to a channel is read once; sums come in two stages (blocks over rows, then one warp a channel, in
// double). Sums walk from the last row to the first and maps from the first to the last: each begins with
// what the pass before it left in the cache. No atomics: the same bits in every run. Included by
// the files of batch norm.
#pragma once

#include "runtime/cuda/plugin/pack.hpp"

namespace dlrun::cuda::norm {

constexpr int kThreads = 256;
constexpr int kForward = 3, kBackward = 2;  // blocks on a processor at once: what registers allow
// Rows that a thread has in flight, of kernels that read one array, or more: enough to hide the memory's
// delay, few enough to stay in registers.
constexpr int kMany = 4, kFew = 2;

// Where one thread's rows are: `columns` packs make a row.
struct Walk {
  std::int64_t rows, columns;
};

template <int V>
struct Channels {
  float of[V];
  __device__ void load(const float* from, std::int64_t group) {
    for (int v = 0; v < V; ++v) of[v] = from[group * V + v];
  }
};

// Calls body(pack index, how many rows on) for the thread's rows in chunks of ROWS; body sees the chunk
// whole.
template <int ROWS, class Body>
__device__ void down(const Walk& walk, std::int64_t group, const Body& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t row = blockIdx.y * static_cast<std::int64_t>(blockDim.y) + threadIdx.y; row < walk.rows;
       row += step * ROWS) {
    const std::int64_t left = (walk.rows - row + step - 1) / step;
    body(row * walk.columns + group, step * walk.columns, static_cast<int>(left < ROWS ? left : ROWS));
  }
}

// The last row first.
template <int ROWS, class Body>
__device__ void up(const Walk& walk, std::int64_t group, const Body& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t row = walk.rows - 1 - (blockIdx.y * static_cast<std::int64_t>(blockDim.y) + threadIdx.y);
       row >= 0; row -= step * ROWS) {
    const std::int64_t left = row / step + 1;
    body(row * walk.columns + group, -step * walk.columns, static_cast<int>(left < ROWS ? left : ROWS));
  }
}

template <class T, int V, int ROWS>
__device__ void load(Pack<T, V> (&packs)[ROWS], const T* from, std::int64_t at, std::int64_t step,
                     int count) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    if (r < count) packs[r] = reinterpret_cast<const Pack<T, V>*>(from)[at + r * step];
}
template <class T, int V>
__device__ void store(T* to, std::int64_t at, const Pack<T, V>& pack) {
  reinterpret_cast<Pack<T, V>*>(to)[at] = pack;
}

// partial[0 or 1][channel][split], from the sums of each thread of the block.
template <int V>
__device__ void leave(const float (&first)[V], const float (&second)[V], std::int64_t group, const Walk& walk,
                      float* partial) {
  __shared__ float scratch[2][kThreads];
  const int lane = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    scratch[0][lane] = first[v], scratch[1][lane] = second[v];
    __syncthreads();
    if (threadIdx.y < 2 && group < walk.columns) {
      float sum = 0;
      for (unsigned y = 0; y < blockDim.y; ++y) sum += scratch[threadIdx.y][y * blockDim.x + threadIdx.x];
      partial[((threadIdx.y * walk.columns + group) * V + v) * gridDim.y + blockIdx.y] = sum;
    }
    __syncthreads();
  }
}

__device__ inline std::int64_t my_group() {
  return blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
}

// Sums of x and x^2.
template <class T, int V>
__global__ __launch_bounds__(kThreads, kForward) void measure(const T* x, Walk walk, float* partial) {
  cudaTriggerProgrammaticLaunchCompletion();
  const std::int64_t group = my_group();
  float first[V] = {}, second[V] = {};
  if (group < walk.columns)
    up<kMany>(walk, group, [&](std::int64_t at, std::int64_t step, int count) {
      Pack<T, V> xs[kMany];
      load(xs, x, at, step, count);
#pragma unroll
      for (int r = 0; r < kMany; ++r)
        if (r < count)
          for (int v = 0; v < V; ++v) {
            const float value = number(xs[r].of[v]);
            first[v] += value;
            second[v] += value * value;
          }
    });
  leave(first, second, group, walk, partial);
}

enum class After { nothing, relu, add, add_relu };
__host__ __device__ constexpr bool adds(After after) {
  return after == After::add || after == After::add_relu;
}
__host__ __device__ constexpr bool rectifies(After after) {
  return after == After::relu || after == After::add_relu;
}

struct Affine {
  const float *mean, *scale, *bias;  // y = (x - mean) scale + bias
};

// Behind a sum the ReLU leaves in `passes` which of a pack's numbers it lets through, a bit each: backward
// reads those instead of the sums.
template <class T, int V, After AFTER>
__global__ __launch_bounds__(kThreads, kForward) void apply(T* to, const T* x, const T* skip,
                                                            std::uint8_t* passes, Affine affine, Walk walk) {
  cudaGridDependencySynchronize();
  constexpr int kRows = adds(AFTER) ? kFew : kMany;
  const std::int64_t group = my_group();
  if (group >= walk.columns) return;
  Channels<V> mean, scale, bias;
  mean.load(affine.mean, group), scale.load(affine.scale, group), bias.load(affine.bias, group);
  down<kRows>(walk, group, [&](std::int64_t at, std::int64_t step, int count) {
    Pack<T, V> xs[kRows], skips[kRows];
    load(xs, x, at, step, count);
    if constexpr (adds(AFTER)) load(skips, skip, at, step, count);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= count) break;
      unsigned bits = 0;
      for (int v = 0; v < V; ++v) {
        float value = fmaf(number(xs[r].of[v]) - mean.of[v], scale.of[v], bias.of[v]);
        if constexpr (adds(AFTER)) value += number(skips[r].of[v]);
        if constexpr (AFTER == After::add_relu) bits |= (value > 0 ? 1U : 0U) << v;
        put(xs[r].of[v], rectifies(AFTER) && value < 0 ? 0.0F : value);
      }
      store(to, at + r * step, xs[r]);
      if constexpr (AFTER == After::add_relu) passes[at + r * step] = static_cast<std::uint8_t>(bits);
    }
  });
}

// Sums of dy and dy (x - mean), where dy is `grad` without what the ReLU stopped. Behind a sum the ReLU is
// seen in the sum's value `out`, and dy is left in `passed` for the other summand and for the next kernel.
template <class T, int V, After AFTER>
__global__ __launch_bounds__(kThreads, kBackward) void measure_gradients(const T* x, const T* grad,
                                                                         const std::uint8_t* passes,
                                                                         T* passed, Affine affine, Walk walk,
                                                                         float* partial) {
  cudaTriggerProgrammaticLaunchCompletion();
  const std::int64_t group = my_group();
  float first[V] = {}, second[V] = {};
  if (group < walk.columns) {
    Channels<V> mean, scale, bias;
    mean.load(affine.mean, group);
    if constexpr (AFTER == After::relu) scale.load(affine.scale, group), bias.load(affine.bias, group);
    up<kMany>(walk, group, [&](std::int64_t at, std::int64_t step, int count) {
      Pack<T, V> xs[kMany], grads[kMany];
      unsigned bits[kMany] = {};
      load(xs, x, at, step, count), load(grads, grad, at, step, count);
      if constexpr (AFTER == After::add_relu)
#pragma unroll
        for (int r = 0; r < kMany; ++r)
          if (r < count) bits[r] = passes[at + r * step];
#pragma unroll
      for (int r = 0; r < kMany; ++r) {
        if (r >= count) break;
        for (int v = 0; v < V; ++v) {
          const float centred = number(xs[r].of[v]) - mean.of[v];
          bool stops = false;
          if constexpr (AFTER == After::relu) stops = !(fmaf(centred, scale.of[v], bias.of[v]) > 0);
          if constexpr (AFTER == After::add_relu) stops = (bits[r] >> v & 1U) == 0;
          const float dy = stops ? 0.0F : number(grads[r].of[v]);
          first[v] += dy;
          second[v] += dy * centred;
          if constexpr (adds(AFTER)) put(grads[r].of[v], dy);
        }
        if constexpr (adds(AFTER)) store(passed, at + r * step, grads[r]);
      }
    });
  }
  leave(first, second, group, walk, partial);
}

struct GradientFactors {
  const float *constant, *linear;  // dx = scale dy - constant - (x - mean) linear
};

template <class T, int V, After AFTER, bool ACCUMULATE>
__global__ __launch_bounds__(kThreads, kBackward) void apply_gradients(T* to, const T* x, const T* grad,
                                                                       Affine affine, GradientFactors by,
                                                                       Walk walk) {
  cudaGridDependencySynchronize();
  constexpr int kRows = ACCUMULATE ? kFew : kMany;
  const std::int64_t group = my_group();
  if (group >= walk.columns) return;
  Channels<V> mean, scale, bias, constant, linear;
  mean.load(affine.mean, group), scale.load(affine.scale, group);
  if constexpr (AFTER == After::relu) bias.load(affine.bias, group);
  constant.load(by.constant, group), linear.load(by.linear, group);
  down<kRows>(walk, group, [&](std::int64_t at, std::int64_t step, int count) {
    Pack<T, V> xs[kRows], grads[kRows], before[kRows];
    load(xs, x, at, step, count), load(grads, grad, at, step, count);
    if constexpr (ACCUMULATE) load(before, static_cast<const T*>(to), at, step, count);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= count) break;
      for (int v = 0; v < V; ++v) {
        const float centred = number(xs[r].of[v]) - mean.of[v];
        bool stops = false;
        if constexpr (AFTER == After::relu) stops = !(fmaf(centred, scale.of[v], bias.of[v]) > 0);
        const float dy = stops ? 0.0F : number(grads[r].of[v]);
        float dx = fmaf(dy, scale.of[v], -constant.of[v]) - centred * linear.of[v];
        if constexpr (ACCUMULATE) dx += number(before[r].of[v]);
        put(xs[r].of[v], dx);
      }
      store(to, at + r * step, xs[r]);
    }
  });
}

// Second stage of sums: one block per channel, of one warp or four; finish(channel, first, second).
constexpr int kMaxWarps = 4;
template <class Finish>
__global__ void finish_kernel(const float* partial, int splits, std::int64_t channels, Finish finish) {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  const std::int64_t channel = blockIdx.x;
  double first = 0, second = 0;
#pragma unroll 4
  for (int split = threadIdx.x; split < splits; split += blockDim.x) {
    first += partial[channel * splits + split];
    second += partial[(channels + channel) * splits + split];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    first += __shfl_down_sync(0xffffffffU, first, offset);
    second += __shfl_down_sync(0xffffffffU, second, offset);
  }
  __shared__ double scratch[2][kMaxWarps];
  if (threadIdx.x % 32 == 0) scratch[0][threadIdx.x / 32] = first, scratch[1][threadIdx.x / 32] = second;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp)
    first += scratch[0][warp], second += scratch[1][warp];
  finish(channel, first, second);
}

}  // namespace dlrun::cuda::norm
