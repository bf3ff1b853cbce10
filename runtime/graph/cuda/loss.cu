// Softmax cross-entropy: one thread a row, in double as on the CPU; the sums in the order of the rows, so that
// they have the same bits in every run.
#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {
namespace {

template <class T>
void score(Device& device, T* slope, const T* scores, double* rows, std::int64_t classes) {
  const std::int64_t batch = device.batch;
  const std::int32_t* labels = device.labels;
  for_each(device.stream, batch, [=] __device__(std::int64_t row) {
    const T* mine = scores + row * classes;
    const std::int64_t label = labels[row];
    const bool counts = label >= 0 && label < classes;
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < classes; ++i)
      if (number(mine[i]) > number(mine[best])) best = i;
    const double high = number(mine[best]);
    double sum = 0;
    for (std::int64_t i = 0; i < classes; ++i) sum += exp(number(mine[i]) - high);
    rows[2 * row] = counts ? log(sum) + high - number(mine[label]) : 0.0;
    rows[2 * row + 1] = counts && best == label ? 1.0 : 0.0;
    if (slope == nullptr) return;
    for (std::int64_t i = 0; i < classes; ++i) {
      const double share = exp(number(mine[i]) - high) / sum - (i == label ? 1.0 : 0.0);
      put(slope[row * classes + i], counts ? static_cast<float>(share / static_cast<double>(batch)) : 0.0F);
    }
  });
}

class Loss final : public Operator {
 public:
  Loss(Device& device, const DlrunCudaNode& node) : node_(node) {
    rows_ = static_cast<double*>(
        device.memory.device(static_cast<std::size_t>(device.batch) * 2 * sizeof(double), "the loss"));
  }
  void forward(Device& device, Mode mode) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    void* slope = mode == Mode::train ? in.gradient : nullptr;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      score(device, static_cast<T*>(slope), static_cast<const T*>(in.value), rows_, node_.in_channels);
    });
    double* total = device.result;
    const double* rows = rows_;
    const std::int64_t batch = device.batch;
    for_each(device.stream, 2, [=] __device__(std::int64_t which) {
      double sum = 0;
      for (std::int64_t row = 0; row < batch; ++row) sum += rows[2 * row + which];
      total[which] = sum;
    });
    in.written = mode == Mode::train;
  }
  void backward(Device&) override {}  // forward left the gradient

 private:
  DlrunCudaNode node_;
  double* rows_ = nullptr;
};

}  // namespace

Made make_loss(Device& device, const DlrunCudaNode& node, std::size_t) {
  return std::make_unique<Loss>(device, node);
}

}  // namespace dlrun::cuda
