// Softmax cross-entropy: one warp a row, in double as on the CPU. Sums have one order: the same bits in every
// run. An auxiliary head's loss leaves its gradient, weighted, and is not reported.
#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {
namespace {

// One warp a row; ties go to the lowest class.
template <class T>
__global__ void score(T* slope, const T* scores, const std::int32_t* labels, double* rows, std::int64_t batch,
                      int classes, double weight) {
  const std::int64_t row = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) / 32;
  if (row >= batch) return;
  const int lane = threadIdx.x % 32;
  const T* mine = scores + row * classes;
  const std::int32_t label = labels[row];
  const bool counts = label >= 0 && label < classes;
  float high = -INFINITY;
  int best = classes;
  for (int i = lane; i < classes; i += 32)
    if (number(mine[i]) > high) high = number(mine[i]), best = i;
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffU, high, offset);
    const int at = __shfl_xor_sync(0xffffffffU, best, offset);
    if (other > high || (other == high && at < best)) high = other, best = at;
  }
  double sum = 0;
  for (int i = lane; i < classes; i += 32) sum += exp(static_cast<double>(number(mine[i])) - high);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  if (lane == 0) {
    rows[2 * row] = counts ? log(sum) + high - number(mine[label]) : 0.0;
    rows[2 * row + 1] = counts && best == label ? 1.0 : 0.0;
  }
  if (slope == nullptr) return;
  for (int i = lane; i < classes; i += 32) {
    const double share = exp(static_cast<double>(number(mine[i])) - high) / sum - (i == label ? 1.0 : 0.0);
    put(slope[row * classes + i],
        counts ? static_cast<float>(share * weight / static_cast<double>(batch)) : 0.0F);
  }
}

// total = (sum of losses, rows that were right), by one block in a fixed order.
__global__ void total_of(double* total, const double* rows, std::int64_t batch) {
  __shared__ double room[256];
  for (int which = 0; which < 2; ++which) {
    double sum = 0;
    for (std::int64_t row = threadIdx.x; row < batch; row += blockDim.x) sum += rows[2 * row + which];
    room[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) total[which] = room[0];
    __syncthreads();
  }
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
      score<<<blocks(device.batch * 32), 256, 0, device.stream>>>(
          static_cast<T*>(slope), static_cast<const T*>(in.value), device.labels, rows_, device.batch,
          static_cast<int>(node_.in_channels), static_cast<double>(node_.loss_weight));
    });
    if (node_.loss_weight == 1) total_of<<<1, 256, 0, device.stream>>>(device.result, rows_, device.batch);
    check(cudaGetLastError(), "the loss");
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
