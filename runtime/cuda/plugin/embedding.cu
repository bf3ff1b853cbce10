// Embedding: rows of a table by the tokens that the host left, and of the table of positions. The gradient of
// the table is summed in the order of the tokens, whatever the card: they are sorted, cut into chunks of
// equal length, and what crosses a cut is put together behind it.
#include <cub/device/device_radix_sort.cuh>

#include "runtime/cuda/plugin/column_sums.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kChunk = 32;  // tokens

// Tokens that are in no row of the table give zeros.
template <class P>
void take_rows(Device& device, P* to, const std::int32_t* tokens, const P* table, std::int64_t rows,
               const P* places, std::int64_t count, std::int64_t length, std::int64_t packs) {
  for_each(device.stream, count * packs, [=] __device__(std::int64_t i) {
    const std::int64_t token = i / packs, at = i - token * packs;
    P all{};
    if (tokens[token] < rows) all = table[tokens[token] * packs + at];
    if (places != nullptr) {
      const P place = places[token % length * packs + at];
      for (int v = 0; v < P::kSize; ++v) put(all.of[v], number(all.of[v]) + number(place.of[v]));
    }
    to[i] = all;
  });
}

// As the rows of a part of the table count them; those of other parts are behind the last row.
void find_own_tokens(Device& device, std::int32_t* own, const std::int32_t* all, std::int64_t count,
                     std::int64_t first, std::int64_t rows) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const std::int64_t token = all[i] - first;
    own[i] = static_cast<std::int32_t>(token >= 0 && token < rows ? token : rows);
  });
}

void count_up(Device& device, std::int32_t* numbers, std::int64_t count) {
  for_each(device.stream, count,
           [=] __device__(std::int64_t i) { numbers[i] = static_cast<std::int32_t>(i); });
}

// Rows of positions that the sequence is too short for have a gradient of zero.
template <class T>
void add_positions(Device& device, float* to, const T* grad, std::int64_t numbers, std::int64_t sequence) {
  const std::int64_t batch = device.batch;
  for_each(device.stream, numbers, [=] __device__(std::int64_t i) {
    float sum = 0;
    if (i < sequence)
      for (std::int64_t row = 0; row < batch; ++row) sum += number(grad[row * sequence + i]);
    to[i] = sum;
  });
}

struct Sorted {
  const std::int32_t *tokens, *places;  // tokens in order, and where each stood
  std::int64_t count, rows;             // tokens from `rows` on are in no row of the table
};

// A block has a chunk and 256 features. A run of equal tokens that lies in the chunk goes to the table; one
// that goes on behind it, or comes from before, leaves its part in `parts`: [chunk][0: from before, 1: goes
// on].
template <class T>
__global__ void add_runs(float* table, float* parts, const T* grad, Sorted by, std::int64_t features,
                         bool adds) {
  const std::int64_t column = blockIdx.y * 256 + threadIdx.x, chunk = blockIdx.x;
  if (column >= features) return;
  const std::int64_t first = chunk * kChunk;
  const std::int64_t end = first + kChunk < by.count ? first + kChunk : by.count;
  float sum = 0;
  bool from_before = first > 0 && by.tokens[first - 1] == by.tokens[first];
  for (std::int64_t i = first; i < end; ++i) {
    sum += number(grad[by.places[i] * features + column]);
    const std::int32_t token = by.tokens[i];
    const bool last = i + 1 == end, goes_on = i + 1 < by.count && by.tokens[i + 1] == token;
    if (goes_on && !last) continue;
    float* const at = table + token * features + column;
    if (from_before)
      parts[chunk * 2 * features + column] = sum;
    else if (goes_on)
      parts[(chunk * 2 + 1) * features + column] = sum;
    else if (token < by.rows)
      *at = (adds ? *at : 0.0F) + sum;
    sum = 0, from_before = false;
  }
}

// The run that begins in the chunk and goes on behind it.
__global__ void join_runs(float* table, const float* parts, Sorted by, std::int64_t features, bool adds) {
  const std::int64_t column = blockIdx.y * 256 + threadIdx.x, chunk = blockIdx.x;
  const std::int64_t end = (chunk + 1) * kChunk;
  if (column >= features || end >= by.count) return;
  const std::int32_t token = by.tokens[end - 1];
  if (by.tokens[end] != token || token >= by.rows) return;
  const std::int64_t first = chunk * kChunk;
  const bool from_before = first > 0 && by.tokens[first - 1] == token && by.tokens[first] == token;
  if (from_before) return;
  float sum = parts[(chunk * 2 + 1) * features + column];
  for (std::int64_t next = chunk + 1; next * kChunk < by.count && by.tokens[next * kChunk] == token; ++next)
    sum += parts[next * 2 * features + column];
  float* const at = table + token * features + column;
  *at = (adds ? *at : 0.0F) + sum;
}

class Embedding final : public Operator {
 public:
  Embedding(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node),
        out_(index),
        spec_(settings_of<op::Embedding>(node)),
        count_(device.batch * node.height),
        chunks_((count_ + kChunk - 1) / kChunk) {
    Memory& memory = device.memory;
    const auto integers = [&] {
      return static_cast<std::int32_t*>(
          memory.device(static_cast<std::size_t>(count_) * sizeof(std::int32_t), "tokens in order"));
    };
    order_ = integers(), sorted_ = integers(), places_ = integers();
    if (node.parts > 1) own_ = integers();
    parts_ = static_cast<float*>(memory.device(
        static_cast<std::size_t>(chunks_ * 2 * spec_.features) * sizeof(float), "gradients of an embedding"));
    check(sort(device, nullptr), "sorting tokens");
    room_ = memory.device(room_bytes_, "sorting tokens");
    count_up(device, order_, count_);
  }

  void forward(Device& device, Mode) override {
    if (own_ != nullptr)
      find_own_tokens(device, own_, all_tokens(device), count_, node_.first_token, spec_.vocabulary);
    const bool adds_positions =
        node_.bias != DLRUN_CUDA_NOWHERE && (node_.facts & DLRUN_CUDA_LEAVES_TERMS) == 0;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      by_pack<T>(spec_.features, [&](auto pack) {
        using P = decltype(pack);
        const void* const places = adds_positions ? device.weights(node_.bias) : nullptr;
        take_rows(device, static_cast<P*>(device.tensors[out_].value), tokens(device),
                  static_cast<const P*>(device.weights(node_.weight)), spec_.vocabulary,
                  static_cast<const P*>(places), count_, node_.height, spec_.features / P::kSize);
      });
    });
  }

  void backward(Device& device) override {
    if (node_.learning == DLRUN_CUDA_FROZEN) return;
    const bool adds = node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE;
    float* const table = device.gradients + node_.weight;
    if (!adds)
      check(cudaMemsetAsync(table, 0,
                            static_cast<std::size_t>(spec_.vocabulary * spec_.features) * sizeof(float),
                            device.stream),
            "clearing the gradient of an embedding");
    check(sort(device, room_), "sorting tokens");
    const dim3 grid(static_cast<unsigned>(chunks_), static_cast<unsigned>((spec_.features + 255) / 256));
    const Sorted by{sorted_, places_, count_, spec_.vocabulary};
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      const T* const grad = static_cast<const T*>(device.tensors[out_].gradient);
      add_runs<<<grid, 256, 0, device.stream>>>(table, parts_, grad, by, spec_.features, adds);
      if (node_.bias != DLRUN_CUDA_NOWHERE)
        add_positions(device, device.gradients + node_.bias, grad, spec_.positions * spec_.features,
                      node_.height * spec_.features);
    });
    join_runs<<<grid, 256, 0, device.stream>>>(table, parts_, by, spec_.features, adds);
    check(cudaGetLastError(), "the gradient of an embedding");
  }

 private:
  static const std::int32_t* all_tokens(const Device& device) {
    return reinterpret_cast<const std::int32_t*>(device.input.numbers);
  }
  const std::int32_t* tokens(const Device& device) const {
    return own_ != nullptr ? own_ : all_tokens(device);
  }

  // Stable, so that equal tokens stay in their order. Without room it asks how much it needs.
  cudaError_t sort(Device& device, void* room) {
    return cub::DeviceRadixSort::SortPairs(room, room_bytes_, tokens(device), sorted_, order_, places_,
                                           static_cast<int>(count_), 0, 32, device.stream);
  }

  DlrunCudaNode node_;
  std::size_t out_;
  op::Embedding spec_;
  std::int64_t count_, chunks_;
  std::int32_t *order_ = nullptr, *sorted_ = nullptr, *places_ = nullptr;
  std::int32_t* own_ = nullptr;  // the tokens, where the table is a part
  float* parts_ = nullptr;
  void* room_ = nullptr;
  std::size_t room_bytes_ = 0;
};

}  // namespace

OperatorPtr make_embedding(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Embedding>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
