// See row_norm.hpp.
#include "runtime/cuda/plugin/row_norm.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kWarps = 8;  // rows of a block

__device__ float over_warp(float sum) {
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  return sum;
}

struct Row {
  std::int64_t features;
  float epsilon;
};

// figures: mean and 1 / deviation of each row.
template <Centre C, class T, class P>
__global__ void forward_rows(T* to, float2* figures, const T* from, const float* scale, const float* shift,
                             std::int64_t rows, Row of) {
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kWarps) + threadIdx.y;
  if (row >= rows) return;
  const P* const mine = reinterpret_cast<const P*>(from + row * of.features);
  P* const out = reinterpret_cast<P*>(to + row * of.features);
  const int packs = static_cast<int>(of.features / P::kSize), lane = static_cast<int>(threadIdx.x);
  const float count = static_cast<float>(of.features);
  float mean = 0;
  if (C == Centre::mean) {
    float sum = 0;
    for (int i = lane; i < packs; i += 32) {
      const P all = mine[i];
      for (int v = 0; v < P::kSize; ++v) sum += number(all.of[v]);
    }
    mean = over_warp(sum) / count;
  }
  float squares = 0;
  for (int i = lane; i < packs; i += 32) {
    const P all = mine[i];
    for (int v = 0; v < P::kSize; ++v) {
      const float off = number(all.of[v]) - mean;
      squares += off * off;
    }
  }
  const float factor = rsqrtf(over_warp(squares) / count + of.epsilon);
  for (int i = lane; i < packs; i += 32) {
    P all = mine[i];
    for (int v = 0; v < P::kSize; ++v) {
      const int at = i * P::kSize + v;
      put(all.of[v], (number(all.of[v]) - mean) * factor * scale[at] + (shift == nullptr ? 0.0F : shift[at]));
    }
    out[i] = all;
  }
  if (lane == 0) figures[row] = make_float2(mean, factor);
}

// With g = dy scale and n the normalized row: dx = factor (g - mean(g) - n mean(g n)).
template <Centre C, class T, class P>
__global__ void backward_rows(T* to, const T* grad, const T* from, const float2* figures, const float* scale,
                              std::int64_t rows, std::int64_t features, bool adds) {
  const std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kWarps) + threadIdx.y;
  if (row >= rows) return;
  const P* const mine = reinterpret_cast<const P*>(from + row * features);
  const P* const above = reinterpret_cast<const P*>(grad + row * features);
  P* const out = reinterpret_cast<P*>(to + row * features);
  const int packs = static_cast<int>(features / P::kSize), lane = static_cast<int>(threadIdx.x);
  const float2 figure = figures[row];
  float sum = 0, along = 0;
  for (int i = lane; i < packs; i += 32) {
    const P x = mine[i], dy = above[i];
    for (int v = 0; v < P::kSize; ++v) {
      const float g = number(dy.of[v]) * scale[i * P::kSize + v];
      sum += g;
      along += g * (number(x.of[v]) - figure.x) * figure.y;
    }
  }
  const float count = static_cast<float>(features);
  const float mean = C == Centre::mean ? over_warp(sum) / count : 0.0F;
  along = over_warp(along) / count;
  for (int i = lane; i < packs; i += 32) {
    const P x = mine[i], dy = above[i];
    P all{};
    if (adds) all = out[i];
    for (int v = 0; v < P::kSize; ++v) {
      const float g = number(dy.of[v]) * scale[i * P::kSize + v];
      const float n = (number(x.of[v]) - figure.x) * figure.y;
      put(all.of[v], (adds ? number(all.of[v]) : 0.0F) + figure.y * (g - mean - n * along));
    }
    out[i] = all;
  }
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
    by_row(device, [&](auto zero, auto pack) {
      using T = decltype(zero);
      forward_rows<C, T, decltype(pack)><<<grid(), block(), 0, device.stream>>>(
          static_cast<T*>(out.value), figures_, static_cast<const T*>(in.value), device.values + node_.weight,
          has_shift() ? device.values + node_.bias : nullptr, rows_, of_);
    });
    check(cudaGetLastError(), "a norm");
  }

  void backward(Device& device) override {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    if (sums_) sum_parameters(device, in, out);
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    by_row(device, [&](auto zero, auto pack) {
      using T = decltype(zero);
      backward_rows<C, T, decltype(pack)><<<grid(), block(), 0, device.stream>>>(
          static_cast<T*>(in.gradient), static_cast<const T*>(out.gradient), static_cast<const T*>(in.value),
          figures_, device.values + node_.weight, rows_, of_.features, adds);
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
