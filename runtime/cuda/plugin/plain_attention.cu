// Attention by kernels of our own, in f32 arithmetic, for what cuDNN has not: f32, odd widths, and dropout by
// the CPU's mask. A warp has a query (or, for the gradients of keys and values, a key); its block's warps
// share tiles of 32 partners in shared memory, one a lane. Sums have a fixed order.
#include "runtime/base/keyed_random.hpp"
#include "runtime/cuda/plugin/attention.hpp"
#include "runtime/cuda/plugin/random_bits.hpp"
#include "runtime/cuda/plugin/warp.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kWarps = 8, kTile = 32, kWidest = 256, kMore = kWidest / 32;  // features of a lane

// Rows of a tile lie one number further apart than they are wide: lanes then read from other banks.
template <class T>
__device__ void load_tile(float* tile, const T* from, std::int64_t step, int first, int length, int width) {
  const int threads = kWarps * 32, thread = static_cast<int>(threadIdx.y * 32 + threadIdx.x);
  for (int i = thread; i < kTile * width; i += threads) {
    const int row = i / width, feature = i - row * width;
    tile[row * (width + 1) + feature] =
        first + row < length ? number(from[(first + row) * step + feature]) : 0.0F;
  }
}

__device__ float dot(const float* left, const float* right, int width) {
  float sum = 0;
  for (int i = 0; i < width; ++i) sum += left[i] * right[i];
  return sum;
}

// What a block works on: one head of one sequence, and kWarps queries or keys of it.
struct Place {
  std::int64_t sequence, head;
  int first;
};
__device__ Place place_of(int heads) {
  return {static_cast<std::int64_t>(blockIdx.y) / heads, static_cast<std::int64_t>(blockIdx.y) % heads,
          static_cast<int>(blockIdx.x) * kWarps};
}

// What becomes of the share that a query has of a key, or of its gradient.
class RowDropout {
 public:
  __device__ RowDropout(const ShareDropout& of, std::int64_t sequence, std::int64_t head, int query,
                        const AttentionSizes& sizes)
      : of_(of) {
    if (of.key == nullptr) return;
    const std::int64_t row = (sequence * of.all_heads + of.first_head + head) * sizes.length + query;
    key_ = runtime::mix(*of.key, static_cast<std::uint64_t>(row));
  }
  __device__ float kept(float share, int key) const {
    if (of_.key == nullptr) return share;
    return random_bits(static_cast<std::uint32_t>(key), key_) >= of_.dies_below ? share * of_.scale : 0.0F;
  }

 private:
  const ShareDropout& of_;
  std::uint64_t key_ = 0;
};

template <class T>
__global__ void forward_queries(T* out, float* figures, const T* packed, AttentionSizes of, float scale,
                                ShareDropout drops) {
  extern __shared__ float room[];
  const int width = static_cast<int>(of.width), length = static_cast<int>(of.length);
  float *const keys = room, *const values = keys + kTile * (width + 1),
               *const queries = values + kTile * (width + 1);
  const Place at = place_of(static_cast<int>(of.heads));
  const std::int64_t row = of.packed(), key_head = at.head / (of.heads / of.key_heads);
  const T* const start = packed + at.sequence * of.length * row;
  const int query = at.first + static_cast<int>(threadIdx.y), lane = static_cast<int>(threadIdx.x);
  float* const mine = queries + threadIdx.y * width;
  for (int i = lane; i < width; i += 32)
    mine[i] = query < length ? number(start[query * row + at.head * width + i]) * scale : 0.0F;
  const RowDropout dropout(drops, at.sequence, at.head, query, of);
  float sums[kMore] = {}, high = -INFINITY, total = 0;
  const int last = min(at.first + kWarps, length);
  for (int first = 0; first < last; first += kTile) {
    __syncthreads();
    load_tile(keys, start + of.keys_at() + key_head * width, row, first, length, width);
    load_tile(values, start + of.values_at() + key_head * width, row, first, length, width);
    __syncthreads();
    if (query >= length || first > query) continue;
    const float score = first + lane <= query ? dot(mine, keys + lane * (width + 1), width) : -INFINITY;
    const float higher = fmaxf(high, max_of_warp(score)), before = expf(high - higher);
    const float power = expf(score - higher);
    total = total * before + sum_of_warp(power), high = higher;
    const float kept = dropout.kept(power, first + lane);
    for (int more = 0; more * 32 + lane < width; ++more) sums[more] *= before;
    for (int key = 0; key < kTile; ++key) {
      const float share = __shfl_sync(0xffffffffU, kept, key);
      for (int more = 0; more * 32 + lane < width; ++more)
        sums[more] += share * values[key * (width + 1) + more * 32 + lane];
    }
  }
  if (query >= length) return;
  for (int more = 0; more * 32 + lane < width; ++more)
    put(out[(at.sequence * of.length + query) * of.features() + at.head * width + more * 32 + lane],
        sums[more] / total);
  if (lane == 0) figures[(at.sequence * of.heads + at.head) * of.length + query] = high + logf(total);
}

// Of each query: its gradient times its result.
template <class T>
__global__ void gradients_along(float* along, const T* grad, const T* out, AttentionSizes of) {
  const std::int64_t place = blockIdx.x * static_cast<std::int64_t>(kWarps) + threadIdx.y;
  if (place >= of.batch * of.length * of.heads) return;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < of.width; i += 32)
    sum += number(grad[place * of.width + i]) * number(out[place * of.width + i]);
  sum = sum_of_warp(sum);
  const std::int64_t head = place % of.heads, row = place / of.heads;
  if (threadIdx.x == 0) along[(row / of.length * of.heads + head) * of.length + row % of.length] = sum;
}

template <class T>
__global__ void backward_queries(T* to, const T* packed, const T* grad, const float* figures,
                                 const float* along, AttentionSizes of, float scale, ShareDropout drops) {
  extern __shared__ float room[];
  const int width = static_cast<int>(of.width), length = static_cast<int>(of.length);
  float *const keys = room, *const values = keys + kTile * (width + 1),
               *const queries = values + kTile * (width + 1), *const grads = queries + kWarps * width;
  const Place at = place_of(static_cast<int>(of.heads));
  const std::int64_t row = of.packed(), key_head = at.head / (of.heads / of.key_heads);
  const T* const start = packed + at.sequence * of.length * row;
  const int query = at.first + static_cast<int>(threadIdx.y), lane = static_cast<int>(threadIdx.x);
  float *const mine = queries + threadIdx.y * width, *const above = grads + threadIdx.y * width;
  for (int i = lane; i < width; i += 32) {
    mine[i] = query < length ? number(start[query * row + at.head * width + i]) : 0.0F;
    above[i] = query < length
                   ? number(grad[(at.sequence * of.length + query) * of.features() + at.head * width + i])
                   : 0.0F;
  }
  const std::int64_t figure = (at.sequence * of.heads + at.head) * of.length + query;
  const float logarithm = query < length ? figures[figure] : 0.0F,
              sum_along = query < length ? along[figure] : 0.0F;
  const RowDropout dropout(drops, at.sequence, at.head, query, of);
  float sums[kMore] = {};
  const int last = min(at.first + kWarps, length);
  for (int first = 0; first < last; first += kTile) {
    __syncthreads();
    load_tile(keys, start + of.keys_at() + key_head * width, row, first, length, width);
    load_tile(values, start + of.values_at() + key_head * width, row, first, length, width);
    __syncthreads();
    if (query >= length || first > query) continue;
    float of_score = 0;
    if (first + lane <= query) {
      const float share = expf(dot(mine, keys + lane * (width + 1), width) * scale - logarithm);
      const float of_share = dropout.kept(dot(above, values + lane * (width + 1), width), first + lane);
      of_score = share * (of_share - sum_along) * scale;
    }
    for (int key = 0; key < kTile; ++key) {
      const float one = __shfl_sync(0xffffffffU, of_score, key);
      for (int more = 0; more * 32 + lane < width; ++more)
        sums[more] += one * keys[key * (width + 1) + more * 32 + lane];
    }
  }
  if (query >= length) return;
  for (int more = 0; more * 32 + lane < width; ++more)
    put(to[(at.sequence * of.length + query) * row + at.head * width + more * 32 + lane], sums[more]);
}

// A warp has a key, and sees the queries of all heads that share it.
template <class T>
__global__ void backward_keys(T* to, const T* packed, const T* grad, const float* figures, const float* along,
                              AttentionSizes of, float scale, ShareDropout drops) {
  extern __shared__ float room[];
  const int width = static_cast<int>(of.width), length = static_cast<int>(of.length);
  float *const queries = room, *const grads = queries + kTile * (width + 1),
               *const keys = grads + kTile * (width + 1), *const values = keys + kWarps * width;
  const Place at = place_of(static_cast<int>(of.key_heads));
  const std::int64_t row = of.packed(), sharing = of.heads / of.key_heads;
  const std::int64_t sequence_row = at.sequence * of.length;
  const T* const start = packed + sequence_row * row;
  const int key = at.first + static_cast<int>(threadIdx.y), lane = static_cast<int>(threadIdx.x);
  float *const mine = keys + threadIdx.y * width, *const value = values + threadIdx.y * width;
  for (int i = lane; i < width; i += 32) {
    mine[i] = key < length ? number(start[key * row + of.keys_at() + at.head * width + i]) : 0.0F;
    value[i] = key < length ? number(start[key * row + of.values_at() + at.head * width + i]) : 0.0F;
  }
  float of_key[kMore] = {}, of_value[kMore] = {};
  for (std::int64_t head = at.head * sharing; head < (at.head + 1) * sharing; ++head)
    for (int first = at.first / kTile * kTile; first < length; first += kTile) {
      __syncthreads();
      load_tile(queries, start + head * width, row, first, length, width);
      load_tile(grads, grad + sequence_row * of.features() + head * width, of.features(), first, length,
                width);
      __syncthreads();
      const int query = first + lane;
      float share = 0, of_score = 0;
      if (query >= key && query < length) {
        const std::int64_t figure = (at.sequence * of.heads + head) * of.length + query;
        share = expf(dot(mine, queries + lane * (width + 1), width) * scale - figures[figure]);
        const RowDropout dropout(drops, at.sequence, head, query, of);
        const float of_share = dropout.kept(dot(value, grads + lane * (width + 1), width), key);
        of_score = share * (of_share - along[figure]) * scale;
        share = dropout.kept(share, key);
      }
      for (int one = 0; one < kTile; ++one) {
        const float to_value = __shfl_sync(0xffffffffU, share, one),
                    to_key = __shfl_sync(0xffffffffU, of_score, one);
        for (int more = 0; more * 32 + lane < width; ++more) {
          of_value[more] += to_value * grads[one * (width + 1) + more * 32 + lane];
          of_key[more] += to_key * queries[one * (width + 1) + more * 32 + lane];
        }
      }
    }
  if (key >= length) return;
  T* const there = to + (sequence_row + key) * row + at.head * width;
  for (int more = 0; more * 32 + lane < width; ++more) {
    put(there[of.keys_at() + more * 32 + lane], of_key[more]);
    put(there[of.values_at() + more * 32 + lane], of_value[more]);
  }
}

class PlainAttention final : public AttentionForm {
 public:
  PlainAttention(Device& device, const AttentionSizes& of)
      : of_(of),
        along_(static_cast<float*>(device.memory.device(
            static_cast<std::size_t>(of.queries()) * sizeof(float), "gradients of attention"))) {
    if (of.width > kWidest)
      throw Failure("attention with heads of " + std::to_string(of.width) +
                    " features is not supported on GPUs");
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      allow(forward_queries<T>), allow(backward_queries<T>), allow(backward_keys<T>);
    });
  }

  void forward(Device& device, const AttentionArrays& arrays) override {
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      forward_queries<<<grid(of_.heads), block(), bytes(), device.stream>>>(
          static_cast<T*>(arrays.out), arrays.figures, static_cast<const T*>(arrays.packed), of_, of_.scale(),
          arrays.dropout);
    });
    check(cudaGetLastError(), "attention");
  }

  void backward(Device& device, const AttentionArrays& arrays) override {
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      const T *const packed = static_cast<const T*>(arrays.packed), *const grad = static_cast<const T*>(
                                                                        arrays.grad_out);
      T* const to = static_cast<T*>(arrays.grad_packed);
      gradients_along<<<static_cast<unsigned>((of_.queries() + kWarps - 1) / kWarps), block(), 0,
                        device.stream>>>(along_, grad, static_cast<const T*>(arrays.out), of_);
      backward_queries<<<grid(of_.heads), block(), bytes(), device.stream>>>(
          to, packed, grad, arrays.figures, along_, of_, of_.scale(), arrays.dropout);
      backward_keys<<<grid(of_.key_heads), block(), bytes(), device.stream>>>(
          to, packed, grad, arrays.figures, along_, of_, of_.scale(), arrays.dropout);
    });
    check(cudaGetLastError(), "the gradient of attention");
  }

 private:
  dim3 grid(std::int64_t heads) const {
    return dim3(static_cast<unsigned>((of_.length + kWarps - 1) / kWarps),
                static_cast<unsigned>(of_.batch * heads));
  }
  static dim3 block() { return dim3(32, kWarps); }
  std::size_t bytes() const {
    const auto width = static_cast<std::size_t>(of_.width);
    return (2 * kTile * (width + 1) + 2 * kWarps * width) * sizeof(float);
  }
  template <class Kernel>
  void allow(Kernel kernel) const {
    check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes())),
        "shared memory for attention");
  }

  AttentionSizes of_;
  float* along_;
};

}  // namespace

std::unique_ptr<AttentionForm> make_plain_attention(Device& device, const AttentionSizes& sizes) {
  return std::make_unique<PlainAttention>(device, sizes);
}

}  // namespace dlrun::cuda
