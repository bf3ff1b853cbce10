// Rows of scores of a vocabulary: the loss of each row's label, and the scores become their gradient. A block
// has a row, and keeps it in shared memory where it fits there: then the scores are read once and written
// once. Exponentials are powers of two of what one multiplication and addition give.
#pragma once

#include <cuda_pipeline.h>

#include "runtime/cuda/plugin/pack.hpp"
#include "runtime/cuda/plugin/warp.hpp"

namespace dlrun::cuda {

constexpr int kScoreThreads = 512;  // of a block, which has a row

#ifdef __CUDACC__
constexpr float kLog2OfE = 1.44269504F;

__device__ inline float power_of_2(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

template <class T, int V>
__device__ float highest(const Pack<T, V>& all) {
  float high = -INFINITY;
  for (int v = 0; v < V; ++v) high = fmaxf(high, number(all.of[v]));
  return high;
}
__device__ inline float highest(const Pack<Bf16, 8>& all) {
  const auto* const pairs = reinterpret_cast<const __nv_bfloat162*>(all.of);
  const __nv_bfloat162 high = __hmax2(__hmax2(pairs[0], pairs[1]), __hmax2(pairs[2], pairs[3]));
  return fmaxf(__low2float(high), __high2float(high));
}

template <class T, int V>
__device__ void put_all(Pack<T, V>& to, const float (&from)[V]) {
  for (int v = 0; v < V; ++v) put(to.of[v], from[v]);
}
__device__ inline void put_all(Pack<Bf16, 8>& to, const float (&from)[8]) {
  auto* const pairs = reinterpret_cast<__nv_bfloat162*>(to.of);
  for (int v = 0; v < 8; v += 2) pairs[v / 2] = __floats2bfloat162_rn(from[v], from[v + 1]);
}

enum class Fold { sum, highest };
template <Fold F>
__device__ float over_block_of_scores(float mine) {
  __shared__ float room[kScoreThreads / 32];
  mine = F == Fold::sum ? sum_of_warp(mine) : max_of_warp(mine);
  __syncthreads();
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = mine;
  __syncthreads();
  mine = room[0];
  for (int warp = 1; warp < kScoreThreads / 32; ++warp)
    mine = F == Fold::sum ? mine + room[warp] : fmaxf(mine, room[warp]);
  return mine;
}

// The packs of a row that this thread has: every kScoreThreads-th. Numbers behind the vocabulary are
// -infinity.
template <bool Kept, class T, class P>
class ScorePacks {
 public:
  __device__ ScorePacks(const T* row, P* room, int vocabulary)
      : from_(Kept ? room : reinterpret_cast<const P*>(row)),
        vocabulary_(vocabulary),
        packs_((vocabulary + P::kSize - 1) / P::kSize) {
    if constexpr (Kept) {
      for (int i = static_cast<int>(threadIdx.x); i < packs_; i += kScoreThreads)
        __pipeline_memcpy_async(room + i, reinterpret_cast<const P*>(row) + i, sizeof(P));
      __pipeline_commit();
      __pipeline_wait_prior(0);  // a thread reads what it copied itself
    }
  }
  // body(a pack's number in the row, the pack)
  template <class Body>
  __device__ void each(const Body& body) const {
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < packs_; i += kScoreThreads) {
      P all = from_[i];
      if ((i + 1) * P::kSize > vocabulary_)
        for (int v = 0; v < P::kSize; ++v)
          if (i * P::kSize + v >= vocabulary_) put(all.of[v], -INFINITY);
      body(i, all);
    }
  }

 private:
  const P* from_;
  int vocabulary_, packs_;
};

// rows: the loss and whether the label has the highest score, the first of several; then, where `weight` is
// not 0, the scores are `weight` times the gradient.
template <bool Kept, class T, class P>
__global__ void __launch_bounds__(kScoreThreads, 2)
    score_row(T* scores, double* rows, const std::int32_t* labels, int vocabulary, std::int64_t step,
              float weight) {
  extern __shared__ uint4 room[];
  T* const mine = scores + blockIdx.x * step;
  const int label = labels[blockIdx.x];
  const bool counts = label >= 0 && label < vocabulary;
  const float own = counts ? number(mine[label]) : 0.0F;
  const ScorePacks<Kept, T, P> packs(mine, reinterpret_cast<P*>(room), vocabulary);
  float high = -INFINITY, sum = 0;
  packs.each([&](int, const P& all) { high = fmaxf(high, highest(all)); });
  high = over_block_of_scores<Fold::highest>(high);
  packs.each([&](int, const P& all) {
    for (int v = 0; v < P::kSize; ++v) sum += power_of_2(fmaf(number(all.of[v]), kLog2OfE, -high * kLog2OfE));
  });
  sum = over_block_of_scores<Fold::sum>(sum);
  bool is_best = counts && own == high;
  if (is_best) {
    bool earlier = false;
    packs.each([&](int i, const P& all) {
      for (int v = 0; v < P::kSize; ++v)
        earlier = earlier || (number(all.of[v]) == high && i * P::kSize + v < label);
    });
    is_best = __syncthreads_or(earlier ? 1 : 0) == 0;
  }
  if (threadIdx.x == 0) {
    rows[2 * blockIdx.x] = counts ? log(static_cast<double>(sum)) + high - own : 0.0;
    rows[2 * blockIdx.x + 1] = is_best ? 1.0 : 0.0;
  }
  if (weight == 0) return;
  const float by = counts ? 1.0F : 0.0F, shift = log2f(weight / sum) - high * kLog2OfE;
  packs.each([&](int i, const P& all) {
    float grad[P::kSize];
    for (int v = 0; v < P::kSize; ++v) grad[v] = by * power_of_2(fmaf(number(all.of[v]), kLog2OfE, shift));
    if (counts && label / P::kSize == i)
      for (int v = 0; v < P::kSize; ++v)
        if (i * P::kSize + v == label) grad[v] -= weight;
    P out;
    put_all(out, grad);
    reinterpret_cast<P*>(mine)[i] = out;
  });
}
#endif

}  // namespace dlrun::cuda
