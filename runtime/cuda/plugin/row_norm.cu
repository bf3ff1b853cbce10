// See row_norm.hpp.
#include <type_traits>

#include "runtime/cuda/plugin/row_norm_kernels.hpp"

namespace dlrun::cuda {
namespace {

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

// Whether the sums of a lane's features fit beside its packs.
template <int N, class P>
constexpr bool stays_in_registers() {
  return N > 0 && N * P::kSize <= 32;
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
    if (node.learning == DLRUN_CUDA_FROZEN) return;
    sums_.emplace(device, node.channels, has_shift() ? 2 : 1);
    by_row(device, [&](auto, auto pack) {
      using P = decltype(pack);
      by_kept(of_.features / P::kSize,
              [&](auto kept) { is_one_pass_ = stays_in_registers<decltype(kept)::value, P>(); });
    });
    Tensor& in = device.tensors[node.inputs[0]];
    const auto wanted = device.bias_sums.find(node.inputs[0]);
    if (!is_one_pass_ || wanted == device.bias_sums.end() || in.first_reader != index) return;
    sums_of_result_ = wanted->second, in.gradient_is_summed = true;
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
    if (in.gradient != nullptr && is_one_pass_) return in_one_pass(device, in, out);
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
  dim3 grid() const { return dim3(static_cast<unsigned>((rows_ + kRowWarps - 1) / kRowWarps)); }
  static dim3 block() { return dim3(32, kRowWarps); }

  // With the sums over the rows of its result, where the layer before wants them.
  void in_one_pass(Device& device, Tensor& in, const Tensor& out) const {
    if (has_shift())
      sums_of_result_ != nullptr ? one_pass<2, 1>(device, in, out) : one_pass<2, 0>(device, in, out);
    else
      sums_of_result_ != nullptr ? one_pass<1, 1>(device, in, out) : one_pass<1, 0>(device, in, out);
    finish_parameters(device);
  }
  template <int N, int S, int R, class P>
  void launch_one_pass(Device& device, const Tensor& in, const Tensor& out, const RowSums& sums,
                       bool adds) const {
    const auto kernel = backward_and_sum<C, N, S, R, P>;
    constexpr std::size_t kBytes = WarpRows<N, P>::bytes();
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kBytes)),
          "shared memory for a norm");
    kernel<<<kColumnSplits, dim3(32, kSumWarps), kBytes, device.stream>>>(
        static_cast<P*>(in.gradient), sums, static_cast<const P*>(out.gradient),
        static_cast<const P*>(in.value), figures_, device.values + node_.weight, rows_, of_.features, adds);
  }
  template <int S, int R>
  void one_pass(Device& device, Tensor& in, const Tensor& out) const {
    const bool adds = claim(in);
    const RowSums sums{sums_->partial(), R == 1 ? sums_of_result_->partial() : nullptr};
    by_row(device, [&](auto, auto pack) {
      using P = decltype(pack);
      by_kept(of_.features / P::kSize, [&](auto kept) {
        constexpr int N = decltype(kept)::value;
        if constexpr (stays_in_registers<N, P>()) launch_one_pass<N, S, R, P>(device, in, out, sums, adds);
      });
    });
    check(cudaGetLastError(), "the gradient of a norm");
  }

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
    finish_parameters(device);
  }
  void finish_parameters(Device& device) const {
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
  bool is_one_pass_ = false;
  const ColumnSums* sums_of_result_ = nullptr;  // where the layer before wants them
  std::optional<ColumnSums> sums_;
};

}  // namespace

OperatorPtr make_row_norm(Device& device, const DlrunCudaNode& node, std::size_t index, Centre centre,
                          float epsilon) {
  if (centre == Centre::mean) return std::make_unique<RowNorm<Centre::mean>>(device, node, index, epsilon);
  return std::make_unique<RowNorm<Centre::zero>>(device, node, index, epsilon);
}

}  // namespace dlrun::cuda
