// The kernels of a sum of two batch norms, as a block of a ResNet ends that changes its shape: none of the
// normalised values is written, and what goes back to both norms is read once. Each thread's share is as in
// batch_norm_kernels.hpp. No atomics: the same bits in every run.
#pragma once

#include "runtime/cuda/plugin/batch_norm_kernels.hpp"

namespace dlrun::cuda::norm {

// One summand: what is normalised, and how.
template <class T>
struct Summand {
  const T* x;
  Affine affine;
};

// to = the sum of both, rectified where AFTER says so; `passes` as apply() leaves them.
template <class T, int V, After AFTER>
__global__ __launch_bounds__(kThreads, kBackward) void apply_both(T* to, Summand<T> left, Summand<T> right,
                                                                  std::uint8_t* passes, Walk walk) {
  cudaGridDependencySynchronize();
  constexpr int kSome = 3;  // between kMany and kFew: the channels of two norms leave no more registers
  const std::int64_t group = my_group();
  if (group >= walk.columns) return;
  Channels<V> means[2], scales[2], bias, of_right;
  means[0].load(left.affine.mean, group), means[1].load(right.affine.mean, group);
  scales[0].load(left.affine.scale, group), scales[1].load(right.affine.scale, group);
  bias.load(left.affine.bias, group), of_right.load(right.affine.bias, group);
  for (int v = 0; v < V; ++v) bias.of[v] += of_right.of[v];
  down<kSome>(walk, group, [&](std::int64_t at, std::int64_t step, int count) {
    Pack<T, V> lefts[kSome], rights[kSome];
    load(lefts, left.x, at, step, count), load(rights, right.x, at, step, count);
#pragma unroll
    for (int r = 0; r < kSome; ++r) {
      if (r >= count) break;
      unsigned bits = 0;
      for (int v = 0; v < V; ++v) {
        const float first = fmaf(number(lefts[r].of[v]) - means[0].of[v], scales[0].of[v], bias.of[v]);
        const float value = fmaf(number(rights[r].of[v]) - means[1].of[v], scales[1].of[v], first);
        if constexpr (rectifies(AFTER)) bits |= (value > 0 ? 1U : 0U) << v;
        put(lefts[r].of[v], rectifies(AFTER) && value < 0 ? 0.0F : value);
      }
      store(to, at + r * step, lefts[r]);
      if constexpr (rectifies(AFTER)) passes[at + r * step] = static_cast<std::uint8_t>(bits);
    }
  });
}

// The gradient of the sum in its packs: `grad` without what the ReLU stopped.
template <class T>
struct GradientRows {
  const T* grad;
  const std::uint8_t* passes;
};

template <After AFTER, int ROWS>
__device__ void load(unsigned (&bits)[ROWS], const std::uint8_t* passes, std::int64_t at, std::int64_t step,
                     int count) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r) bits[r] = rectifies(AFTER) && r < count ? passes[at + r * step] : ~0U;
}

// For each summand the sums of dy and dy (x - mean).
template <class T, int V, After AFTER>
__global__ __launch_bounds__(kThreads, kBackward) void measure_both_gradients(Summand<T> left,
                                                                              Summand<T> right,
                                                                              GradientRows<T> grad, Walk walk,
                                                                              float* left_partial,
                                                                              float* right_partial) {
  cudaTriggerProgrammaticLaunchCompletion();
  const std::int64_t group = my_group();
  float sums[V] = {}, lefts[V] = {}, rights[V] = {};
  if (group < walk.columns) {
    Channels<V> means[2];
    means[0].load(left.affine.mean, group), means[1].load(right.affine.mean, group);
    up<kFew>(walk, group, [&](std::int64_t at, std::int64_t step, int count) {
      Pack<T, V> of_left[kFew], of_right[kFew], grads[kFew];
      unsigned bits[kFew];
      load(of_left, left.x, at, step, count), load(of_right, right.x, at, step, count);
      load(grads, grad.grad, at, step, count), load<AFTER>(bits, grad.passes, at, step, count);
#pragma unroll
      for (int r = 0; r < kFew; ++r) {
        if (r >= count) break;
        for (int v = 0; v < V; ++v) {
          const float dy = (bits[r] >> v & 1U) == 0 ? 0.0F : number(grads[r].of[v]);
          sums[v] += dy;
          lefts[v] += dy * (number(of_left[r].of[v]) - means[0].of[v]);
          rights[v] += dy * (number(of_right[r].of[v]) - means[1].of[v]);
        }
      }
    });
  }
  leave(sums, lefts, group, walk, left_partial);
  leave(sums, rights, group, walk, right_partial);
}

// Where the gradient of a summand's input goes; null: nobody wants it.
template <class T>
struct Target {
  T* to;
  bool adds;
};

// What one summand's map needs of its channels: dx = scale dy - linear x + constant.
template <int V>
struct Line {
  Channels<V> scale, linear, constant;
  __device__ void load(const Affine& affine, const GradientFactors& by, std::int64_t group) {
    Channels<V> mean;
    mean.load(affine.mean, group), scale.load(affine.scale, group);
    linear.load(by.linear, group), constant.load(by.constant, group);
    for (int v = 0; v < V; ++v) constant.of[v] = fmaf(mean.of[v], linear.of[v], -constant.of[v]);
  }
};

// Usual: both inputs have a gradient that nobody left a part of. Both targets may be the same, of a value
// that is added to itself: then the right one adds, and reads what the left one stored.
enum class Targets { usual, any };
template <class T, int V, Targets TARGETS>
__device__ void leave_gradient(const Target<T>& target, std::int64_t at, Pack<T, V> x, const float (&dy)[V],
                               const Line<V>& line) {
  if (TARGETS == Targets::any && target.to == nullptr) return;
  Pack<T, V> before{};
  const bool adds = TARGETS == Targets::any && target.adds;
  if (adds) before = reinterpret_cast<const Pack<T, V>*>(target.to)[at];
  for (int v = 0; v < V; ++v) {
    float dx = fmaf(dy[v], line.scale.of[v], fmaf(-number(x.of[v]), line.linear.of[v], line.constant.of[v]));
    if (adds) dx += number(before.of[v]);
    put(x.of[v], dx);
  }
  store(target.to, at, x);
}

template <class T, int V, After AFTER, Targets TARGETS>
__global__ __launch_bounds__(kThreads, kBackward) void apply_both_gradients(
    Target<T> to_left, Target<T> to_right, Summand<T> left, Summand<T> right, GradientRows<T> grad,
    GradientFactors by_left, GradientFactors by_right, Walk walk) {
  cudaGridDependencySynchronize();
  const std::int64_t group = my_group();
  if (group >= walk.columns) return;
  Line<V> lines[2];
  lines[0].load(left.affine, by_left, group), lines[1].load(right.affine, by_right, group);
  down<kFew>(walk, group, [&](std::int64_t at, std::int64_t step, int count) {
    Pack<T, V> of_left[kFew], of_right[kFew], grads[kFew];
    unsigned bits[kFew];
    load(grads, grad.grad, at, step, count), load<AFTER>(bits, grad.passes, at, step, count);
    load(of_left, left.x, at, step, count), load(of_right, right.x, at, step, count);
#pragma unroll
    for (int r = 0; r < kFew; ++r) {
      if (r >= count) break;
      float dy[V];
      for (int v = 0; v < V; ++v) dy[v] = (bits[r] >> v & 1U) == 0 ? 0.0F : number(grads[r].of[v]);
      leave_gradient<T, V, TARGETS>(to_left, at + r * step, of_left[r], dy, lines[0]);
      leave_gradient<T, V, TARGETS>(to_right, at + r * step, of_right[r], dy, lines[1]);
    }
  });
}

}  // namespace dlrun::cuda::norm
