// See row_norm.hpp.
#include <type_traits>

#include "runtime/cuda/plugin/row_norm.hpp"
#include "runtime/cuda/plugin/warp.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kWarps = 8;  // rows of a block

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
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kWarps) + threadIdx.y;
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
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kWarps) + threadIdx.y;
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

// body(the number of packs of a lane that stay in registers)
template <class Body>
void by_kept(std::int64_t packs, const Body& body) {
  using std::integral_constant;
  if (packs <= 32) return body(integral_constant<int, 1>{});
  if (packs <= 64) return body(integral_constant<int, 2>{});
  if (packs <= 96) return body(integral_constant<int, 3>{});
  if (packs <= 128) return body(integral_constant<int, 4>{});
  if (packs <= 256) return body(integral_constant<int, 8>{});
  body(integral_constant<int, 0>{});
}

// The sums of dy n, and of dy where there are two, over the rows.
template <int Sums, class P, class T>
void sum_terms(Device& device, float* partial, const T* from, const T* grad, const float2* figures,
               std::int64_t rows, std::int64_t features) {
  sum_columns<Sums, P>(device, partial, rows, features,
                       [=] __device__(std::int64_t row, std::int64_t column, float(&sums)[Sums][P::kSize]) {
                         const P x = *reinterpret_cast<const P*>(from + row * features + column);
                         const P dy = *reinterpret_cast<const P*>(grad + row * features + column);
                         const float2 figure = figures[row];
                         for (int v = 0; v < P::kSize; ++v) {
                           sums[0][v] += number(dy.of[v]) * (number(x.of[v]) - figure.x) * figure.y;
                           if (Sums == 2) sums[Sums - 1][v] += number(dy.of[v]);
                         }
                       });
}

template <Centre C>
class RowNorm final : public Operator {
 public:
  RowNorm(Device& device, const DlrunCudaNode& node, std::size_t index, float epsilon)
      : node_(node),
        out_(index),
        of_{node.channels, epsilon},
        rows_(device.batch * node.height),
        figures_(static_cast<float2*>(
            device.memory.device(static_cast<std::size_t>(rows_) * sizeof(float2), "figures of a norm"))) {
    if (node.learning != DLRUN_CUDA_FROZEN) sums_.emplace(device, node.channels, has_shift() ? 2 : 1);
  }

  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    by_row(device, [&](auto, auto pack) {
      using P = decltype(pack);
      by_kept(of_.features / P::kSize, [&](auto kept) {
        forward_rows<C, decltype(kept)::value, P><<<grid(), block(), 0, device.stream>>>(
            static_cast<P*>(out.value), figures_, static_cast<const P*>(in.value),
            device.values + node_.weight, has_shift() ? device.values + node_.bias : nullptr, rows_, of_);
      });
    });
    check(cudaGetLastError(), "a norm");
  }

  void backward(Device& device) override {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    if (sums_) sum_parameters(device, in, out);
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    by_row(device, [&](auto, auto pack) {
      using P = decltype(pack);
      by_kept(of_.features / P::kSize, [&](auto kept) {
        backward_rows<C, decltype(kept)::value, P><<<grid(), block(), 0, device.stream>>>(
            static_cast<P*>(in.gradient), static_cast<const P*>(out.gradient),
            static_cast<const P*>(in.value), figures_, device.values + node_.weight, rows_, of_.features,
            adds);
      });
    });
    check(cudaGetLastError(), "the gradient of a norm");
  }

 private:
  bool has_shift() const { return node_.bias != DLRUN_CUDA_NOWHERE; }
  dim3 grid() const { return dim3(static_cast<unsigned>((rows_ + kWarps - 1) / kWarps)); }
  static dim3 block() { return dim3(32, kWarps); }

  template <class Body>
  void by_row(const Device& device, const Body& body) const {
    by_type(device,
            [&](auto zero) { by_pack<decltype(zero)>(of_.features, [&](auto pack) { body(zero, pack); }); });
  }

  void sum_parameters(Device& device, const Tensor& in, const Tensor& out) const {
    if (has_shift())
      sum<2>(device, in, out);
    else
      sum<1>(device, in, out);
    const bool adds = node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE;
    sums_->finish(device, 0, device.gradients + node_.weight, adds);
    if (has_shift()) sums_->finish(device, 1, device.gradients + node_.bias, adds);
  }

  template <int Sums>
  void sum(Device& device, const Tensor& in, const Tensor& out) const {
    by_row(device, [&](auto zero, auto pack) {
      using T = decltype(zero);
      sum_terms<Sums, decltype(pack)>(device, sums_->partial(), static_cast<const T*>(in.value),
                                      static_cast<const T*>(out.gradient), figures_, rows_, of_.features);
    });
  }

  DlrunCudaNode node_;
  std::size_t out_;
  Row of_;
  std::int64_t rows_;
  float2* figures_;
  std::optional<ColumnSums> sums_;
};

}  // namespace

OperatorPtr make_row_norm(Device& device, const DlrunCudaNode& node, std::size_t index, Centre centre,
                          float epsilon) {
  if (centre == Centre::mean) return std::make_unique<RowNorm<Centre::mean>>(device, node, index, epsilon);
  return std::make_unique<RowNorm<Centre::zero>>(device, node, index, epsilon);
}

}  // namespace dlrun::cuda
