// The loops of sums in a communication dtype: four numbers a thread where the addresses allow it. Memory is
// their bound: each reads and writes every number once.
#include <type_traits>

#include <cuda_fp16.h>

#include "runtime/cuda/plugin/allreduce_calls.hpp"
#include "runtime/cuda/plugin/device.hpp"
#include "runtime/cuda/plugin/pack.hpp"

namespace dlrun::cuda {

using F16 = __half;

__device__ inline float number(F16 value) {
  return __half2float(value);
}
__device__ inline void put(F16& to, float value) {
  to = __float2half_rn(value);
}

namespace {

constexpr int kTogether = 4;

// body(a constant): how many numbers each thread takes, such that all of these lie evenly and none is left.
template <class Body, class... Addresses>
void by_number(std::size_t count, const Body& body, Addresses... addresses) {
  const bool even =
      count % kTogether == 0 && ((reinterpret_cast<std::uintptr_t>(addresses) % 16 == 0) && ...);
  if (even)
    body(std::integral_constant<int, kTogether>{});
  else
    body(std::integral_constant<int, 1>{});
}

template <class Body>
void by_dtype(DlrunCudaCommDtype dtype, const Body& body) {
  if (dtype == DLRUN_CUDA_COMM_BF16)
    body(Bf16{});
  else
    body(F16{});
}

// A kernel each, rather than for_each(): a lambda of the device may not stand within a generic one.
template <class Short, int V>
__global__ void pack_kernel(std::int64_t packs, Pack<Short, V>* to, const Pack<float, V>* from) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += step) {
    const Pack<float, V> numbers = from[i];
    Pack<Short, V> out;
    for (int v = 0; v < V; ++v) put(out.of[v], numbers.of[v]);
    to[i] = out;
  }
}

template <class Short, int V>
__global__ void unpack_kernel(std::int64_t packs, Pack<float, V>* to, const Pack<Short, V>* from) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += step) {
    const Pack<Short, V> numbers = from[i];
    Pack<float, V> out;
    for (int v = 0; v < V; ++v) out.of[v] = number(numbers.of[v]);
    to[i] = out;
  }
}

template <int V>
__global__ void add_kernel(std::int64_t packs, Pack<float, V>* to, const Pack<float, V>* left,
                           const Pack<float, V>* right) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += step) {
    const Pack<float, V> a = left[i], b = right[i];
    Pack<float, V> out;
    for (int v = 0; v < V; ++v) out.of[v] = a.of[v] + b.of[v];
    to[i] = out;
  }
}

// `stride` in packs.
template <class Short, int V>
__global__ void pack_sum_kernel(std::int64_t packs, Pack<Short, V>* to, const Pack<float, V>* own,
                                const Pack<Short, V>* others, std::int64_t stride, int own_place,
                                int places) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += step) {
    const Pack<float, V> mine = own[i];
    Pack<float, V> sum{};
    for (int place = 0; place < places; ++place) {
      if (place == own_place) {
        for (int v = 0; v < V; ++v) sum.of[v] += mine.of[v];
        continue;
      }
      const Pack<Short, V> term = others[place * stride + i];
      for (int v = 0; v < V; ++v) sum.of[v] += number(term.of[v]);
    }
    Pack<Short, V> out;
    for (int v = 0; v < V; ++v) put(out.of[v], sum.of[v]);
    to[i] = out;
  }
}

}  // namespace

void pack(DlrunCudaCommDtype dtype, void* to, const float* from, std::size_t count, cudaStream_t stream) {
  by_dtype(dtype, [&](auto zero) {
    using Short = decltype(zero);
    by_number(
        count,
        [&](auto together) {
          constexpr int V = decltype(together)::value;
          const auto packs = static_cast<std::int64_t>(count / V);
          pack_kernel<<<blocks(packs), 256, 0, stream>>>(packs, static_cast<Pack<Short, V>*>(to),
                                                         reinterpret_cast<const Pack<float, V>*>(from));
        },
        to, from);
  });
  check(cudaGetLastError(), "packing gradients");
}

void unpack(DlrunCudaCommDtype dtype, float* to, const void* from, std::size_t count, cudaStream_t stream) {
  by_dtype(dtype, [&](auto zero) {
    using Short = decltype(zero);
    by_number(
        count,
        [&](auto together) {
          constexpr int V = decltype(together)::value;
          const auto packs = static_cast<std::int64_t>(count / V);
          unpack_kernel<<<blocks(packs), 256, 0, stream>>>(packs, reinterpret_cast<Pack<float, V>*>(to),
                                                           static_cast<const Pack<Short, V>*>(from));
        },
        to, from);
  });
  check(cudaGetLastError(), "unpacking gradients");
}

void add(float* to, const float* left, const float* right, std::size_t count, cudaStream_t stream) {
  by_number(
      count,
      [&](auto together) {
        constexpr int V = decltype(together)::value;
        const auto packs = static_cast<std::int64_t>(count / V);
        add_kernel<<<blocks(packs), 256, 0, stream>>>(packs, reinterpret_cast<Pack<float, V>*>(to),
                                                      reinterpret_cast<const Pack<float, V>*>(left),
                                                      reinterpret_cast<const Pack<float, V>*>(right));
      },
      to, left, right);
  check(cudaGetLastError(), "adding gradients of shards");
}

void pack_sum(DlrunCudaCommDtype dtype, void* to, const DlrunCudaTerms& terms, std::size_t count,
              cudaStream_t stream) {
  by_dtype(dtype, [&](auto zero) {
    using Short = decltype(zero);
    by_number(
        count,
        [&](auto together) {
          constexpr int V = decltype(together)::value;
          const auto packs = static_cast<std::int64_t>(count / V);
          pack_sum_kernel<<<blocks(packs), 256, 0, stream>>>(
              packs, static_cast<Pack<Short, V>*>(to), reinterpret_cast<const Pack<float, V>*>(terms.own),
              static_cast<const Pack<Short, V>*>(terms.others), static_cast<std::int64_t>(terms.stride / V),
              terms.own_place, terms.places);
        },
        to, terms.own, terms.others, static_cast<const Short*>(terms.others) + terms.stride);
  });
  check(cudaGetLastError(), "adding gradients of all ranks");
}

}  // namespace dlrun::cuda
