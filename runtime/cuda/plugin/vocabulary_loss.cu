// The end of a language model: scores of the vocabulary by a product, their cross-entropy in place, and both
// gradients, for a part of the rows at a time, so that the scores of all are never there. All of it is done
// in the forward pass, as losses do. Sums of losses are in a fixed order. The ranks of a tensor group have
// the scores of some tokens each: they exchange four numbers per row.
#include <algorithm>

#include "runtime/cuda/plugin/loss_rows.hpp"
#include "runtime/cuda/plugin/score_rows.hpp"
#include "runtime/cuda/plugin/sequence_product.hpp"

namespace dlrun::cuda {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{2} << 30;  // of the scores that are there at once
constexpr std::int64_t kStep = 64;                         // numbers, of which a row of scores is a multiple
constexpr std::size_t kSharedBeside = 1024;                // bytes, for what else a block has

// A pair that takes part in finding the highest score and the sum of powers in one pass.
struct Figure {
  float high, sum;
  int best;
};
__device__ Figure join(const Figure& left, const Figure& right) {
  const bool first = left.high > right.high || (left.high == right.high && left.best < right.best);
  const Figure &upper = first ? left : right, &lower = first ? right : left;
  if (lower.high == -INFINITY) return upper;
  return {upper.high, upper.sum + lower.sum * __expf(lower.high - upper.high), upper.best};
}
__device__ Figure over_block(Figure mine) {
  __shared__ Figure room[kScoreThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) {
    const Figure other{__shfl_xor_sync(0xffffffffU, mine.high, offset),
                       __shfl_xor_sync(0xffffffffU, mine.sum, offset),
                       __shfl_xor_sync(0xffffffffU, mine.best, offset)};
    mine = join(mine, other);
  }
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = mine;
  __syncthreads();
  mine = room[0];
  for (int warp = 1; warp < kScoreThreads / 32; ++warp) mine = join(mine, room[warp]);
  return mine;
}

// body(the number of a pack of this thread in the row, where it lies)
template <class P, class T, class Body>
__device__ void each_pack(T* row, int numbers, const Body& body) {
  for (int at = static_cast<int>(threadIdx.x) * P::kSize; at < numbers; at += kScoreThreads * P::kSize)
    body(at, reinterpret_cast<P*>(row + at));
}

// A vocabulary of which the ranks of a tensor group have parts.
struct Divided {
  int first, tokens, parts;  // this part's first token; tokens of all parts
};
// A part of a row: its highest score, the sum of e^(score - highest), and where in the part the highest one
// is; the label's score, where that is in the part.
struct PartOfRow {
  float highest, sum, own;
  std::int32_t best;
};

template <class T, class P>
__global__ void __launch_bounds__(kScoreThreads)
    sum_part(const T* scores, PartOfRow* parts, const std::int32_t* labels, int vocabulary, std::int64_t step,
             Divided by) {
  const T* const mine = scores + blockIdx.x * step;
  Figure figure{-INFINITY, 0, vocabulary};
  each_pack<const P>(mine, vocabulary, [&](int first, const P* at) {
    const P all = *at;
    Figure part{-INFINITY, 0, vocabulary};
    for (int v = 0; v < P::kSize; ++v)
      if (first + v < vocabulary && number(all.of[v]) > part.high)
        part.high = number(all.of[v]), part.best = first + v;
    for (int v = 0; v < P::kSize; ++v)
      if (first + v < vocabulary) part.sum += __expf(number(all.of[v]) - part.high);
    figure = join(figure, part);
  });
  figure = over_block(figure);
  if (threadIdx.x != 0) return;
  const int label = labels[blockIdx.x] - by.first;
  const bool is_here = label >= 0 && label < vocabulary;
  parts[blockIdx.x] = {figure.high, figure.sum, is_here ? number(mine[label]) : 0.0F, figure.best};
}

// What all parts say of a row, in their order: the same on all ranks.
__device__ Figure join_parts(const PartOfRow* parts, std::int64_t rows, int label, const Divided& by,
                             float& own, bool& is_best) {
  Figure figure{-INFINITY, 0, by.tokens};
  const int share = by.tokens / by.parts, more = by.tokens % by.parts;
  for (int part = 0, first = 0; part < by.parts; ++part) {
    const PartOfRow& one = parts[part * rows];
    const int tokens = share + (part < more ? 1 : 0);
    if (label >= first && label < first + tokens) own = one.own;
    figure = join(figure, Figure{one.highest, one.sum, first + one.best});
    first += tokens;
  }
  is_best = figure.best == label;
  return figure;
}

template <class T, class P>
__global__ void __launch_bounds__(kScoreThreads)
    join_row(T* scores, double* rows, const PartOfRow* parts, const std::int32_t* labels, int vocabulary,
             std::int64_t step, float weight, bool wants_gradient, Divided by) {
  T* const mine = scores + blockIdx.x * step;
  const int label = labels[blockIdx.x], here = label - by.first;
  const bool counts = label >= 0 && label < by.tokens;
  float own = 0;
  bool is_best = false;
  const Figure figure = join_parts(parts + blockIdx.x, gridDim.x, label, by, own, is_best);
  if (threadIdx.x == 0) {
    rows[2 * blockIdx.x] = counts ? log(static_cast<double>(figure.sum)) + figure.high - own : 0.0;
    rows[2 * blockIdx.x + 1] = counts && is_best ? 1.0 : 0.0;
  }
  if (!wants_gradient) return;
  const float scale = counts ? weight / figure.sum : 0.0F;
  each_pack<P>(mine, vocabulary, [&](int first, P* at) {
    P all = *at;
    for (int v = 0; v < P::kSize; ++v) {
      const float part = scale * __expf(number(all.of[v]) - figure.high);
      put(all.of[v], first + v >= vocabulary ? 0.0F : part - (counts && first + v == here ? weight : 0.0F));
    }
    *at = all;
  });
}

class VocabularyLoss final : public Operator {
 public:
  VocabularyLoss(Device& device, const DlrunCudaNode& node)
      : node_(node),
        vocabulary_(settings_of<op::VocabularyLoss>(node).vocabulary),
        step_((vocabulary_ + kStep - 1) / kStep * kStep),
        rows_(device.batch * node.in_height),
        part_(part_of(device)),
        losses_(device, node, rows_, node.in_height),
        product_(device, {part_, node.in_channels, step_, vocabulary_}, "the scores of a vocabulary"),
        kept_bytes_(bytes_kept(device)),
        scores_(device.memory.device(static_cast<std::size_t>(part_ * step_) * device.size(),
                                     "scores of a vocabulary")) {
    check(cudaMemset(scores_, 0, static_cast<std::size_t>(part_ * step_) * device.size()), "clearing scores");
    if (node.parts > 1) {
      const auto rows = static_cast<std::size_t>(part_) * sizeof(PartOfRow);
      own_rows_ = static_cast<PartOfRow*>(device.memory.device(rows, "parts of scores"));
      all_rows_ = static_cast<PartOfRow*>(
          device.memory.device(rows * static_cast<std::size_t>(node.parts), "all parts of scores"));
    }
    if (vocabulary_ == step_) return;
    padded_ = device.memory.device(weight_bytes(device, step_), "weights of a vocabulary");
    check(cudaMemset(padded_, 0, weight_bytes(device, step_)), "clearing weights");
  }

  void forward(Device& device, Mode mode) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    const LossRows::GradientRows grad = LossRows::grad(in, mode);
    pad(device);
    for (std::int64_t first = 0; first < rows_; first += part_) {
      const void* const x = from(device, in.value, first);
      product_.forward(device, {.x = x, .w = weights(device), .y = scores_});
      score(device, first, mode);
      if (mode != Mode::train) continue;
      if (node_.learning != DLRUN_CUDA_FROZEN)
        product_.weights(device, x, scores_, device.gradients + node_.weight, nullptr,
                         first > 0 || node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE);
      if (grad.array == nullptr) continue;
      product_.data(device, weights(device), scores_, const_cast<void*>(from(device, grad.array, first)),
                    grad.adds);
    }
    losses_.report(device);
  }
  void backward(Device&) override {}

  // The rows of one position, one behind the other, through the products of a part.
  bool next_scores(Device& device, std::int64_t position, float* to) override {
    const std::int64_t length = node_.in_height, features = node_.in_channels;
    const void* const value = device.tensors[node_.inputs[0]].value;
    const std::size_t row = static_cast<std::size_t>(features) * device.size();
    for (std::int64_t sequence = 0; sequence < device.batch; ++sequence) {
      // A part that begins with the row, or ends with the last one.
      const std::int64_t wanted = sequence * length + position, first = std::min(wanted, rows_ - part_);
      const char* const x = static_cast<const char*>(value) + static_cast<std::size_t>(first) * row;
      product_.forward(device, {.x = x, .w = weights(device), .y = scores_});
      read_row(device, wanted - first, to + sequence * vocabulary_);
    }
    return true;
  }

 private:
  std::size_t weight_bytes(const Device& device, std::int64_t rows) const {
    return static_cast<std::size_t>(rows * node_.in_channels) * device.size();
  }
  // Products over a vocabulary that is no multiple of kStep take half as long again: then there is a copy
  // with rows of zeros behind it.
  const void* weights(const Device& device) const {
    return padded_ != nullptr ? padded_ : device.weights(node_.weight);
  }
  void pad(Device& device) const {
    if (padded_ == nullptr) return;
    check(cudaMemcpyAsync(padded_, device.weights(node_.weight), weight_bytes(device, vocabulary_),
                          cudaMemcpyDeviceToDevice, device.stream),
          "a copy on the device");
  }

  // The largest part that divides the rows and whose scores fit; on all ranks of a tensor group the same.
  std::int64_t part_of(const Device& device) const {
    const std::int64_t widest = node_.parts > 1 ? node_.tokens / node_.parts + 1 : vocabulary_;
    const std::int64_t step = (widest + kStep - 1) / kStep * kStep;
    const std::int64_t fits =
        std::max<std::int64_t>(1, kMaxBytes / (step * static_cast<std::int64_t>(device.size())));
    std::int64_t parts = (rows_ + fits - 1) / fits;
    while (rows_ % parts != 0) ++parts;
    return rows_ / parts;
  }

  const void* from(const Device& device, const void* rows, std::int64_t first) const {
    return static_cast<const char*>(rows) +
           static_cast<std::size_t>(first * node_.in_channels) * device.size();
  }

  void exchange_rows(Device& device) const {
    const DlrunCudaPeers& peers = *device.peers;
    if (peers.tensor_exchange == nullptr) return;
    told(peers.tensor_exchange(peers.context, own_rows_, all_rows_,
                               static_cast<std::size_t>(part_) * sizeof(PartOfRow), device.stream),
         "exchanging parts of scores");
  }

  // With the other ranks of the tensor group.
  void score_together(Device& device, std::int64_t first, Mode mode) const {
    const float weight = 1.0F / static_cast<float>(rows_);
    const Divided by{static_cast<int>(node_.first_token), static_cast<int>(node_.tokens),
                     static_cast<int>(node_.parts)};
    const std::int32_t* const labels = device.labels + first;
    const auto blocks_of_rows = static_cast<unsigned>(part_);
    const int vocabulary = static_cast<int>(vocabulary_);
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      using P = Pack<T, 16 / sizeof(T)>;
      T* const scores = static_cast<T*>(scores_);
      sum_part<T, P><<<blocks_of_rows, kScoreThreads, 0, device.stream>>>(scores, own_rows_, labels,
                                                                          vocabulary, step_, by);
      exchange_rows(device);
      join_row<T, P><<<blocks_of_rows, kScoreThreads, 0, device.stream>>>(
          scores, losses_.data() + 2 * first, all_rows_, labels, vocabulary, step_, weight,
          mode == Mode::train, by);
    });
    check(cudaGetLastError(), "the loss");
  }

  void score(Device& device, std::int64_t first, Mode mode) const {
    if (own_rows_ != nullptr) return score_together(device, first, mode);
    const float weight = 1.0F / static_cast<float>(rows_);
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      using P = Pack<T, 16 / sizeof(T)>;
      const auto kernel = kept_bytes_ > 0 ? score_row<true, T, P> : score_row<false, T, P>;
      kernel<<<static_cast<unsigned>(part_), kScoreThreads, kept_bytes_, device.stream>>>(
          static_cast<T*>(scores_), losses_.data() + 2 * first, device.labels + first,
          static_cast<int>(vocabulary_), step_, mode == Mode::train ? weight : 0.0F);
    });
    check(cudaGetLastError(), "the loss");
  }
  // Shared memory for a row of scores; 0 where it has no room.
  std::size_t bytes_kept(const Device& device) const {
    int number = 0, most = 0;
    check(cudaGetDevice(&number), "asking for the GPU");
    check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, number),
          "asking for shared memory");
    const std::size_t bytes = static_cast<std::size_t>(step_) * device.size();
    if (bytes + kSharedBeside > static_cast<std::size_t>(most)) return 0;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      check(cudaFuncSetAttribute(score_row<true, T, Pack<T, 16 / sizeof(T)>>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
            "shared memory for scores");
    });
    return bytes;
  }

  void read_row(Device& device, std::int64_t row, float* to) const {
    std::vector<unsigned char> there(static_cast<std::size_t>(vocabulary_) * device.size());
    check(cudaMemcpyAsync(
              there.data(),
              static_cast<const char*>(scores_) + static_cast<std::size_t>(row * step_) * device.size(),
              there.size(), cudaMemcpyDeviceToHost, device.stream),
          "reading scores");
    check(cudaStreamSynchronize(device.stream), "reading scores");
    for (std::int64_t i = 0; i < vocabulary_; ++i)
      to[i] = device.half() ? __bfloat162float(reinterpret_cast<const Bf16*>(there.data())[i])
                            : reinterpret_cast<const float*>(there.data())[i];
  }

  DlrunCudaNode node_;
  std::int64_t vocabulary_, step_, rows_, part_;
  LossRows losses_;
  SequenceProduct product_;
  std::size_t kept_bytes_;  // of shared memory
  void* scores_;
  void* padded_ = nullptr;
  PartOfRow *own_rows_ = nullptr, *all_rows_ = nullptr;  // where a tensor group divides the vocabulary
};

}  // namespace

OperatorPtr make_vocabulary_loss(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<VocabularyLoss>(device, plan.nodes[index]);
}

}  // namespace dlrun::cuda
