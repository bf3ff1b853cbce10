// See lifetimes.hpp. The largest is placed first, each at the lowest place that is free for as long as it
// lives.
#include "runtime/graph/cuda/lifetimes.hpp"

#include <algorithm>
#include <numeric>

namespace dlrun::cuda {
namespace {

constexpr std::size_t kLine = 256;

bool meet(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::size_t bytes_of(const DlrunCudaPlan& plan, const DlrunCudaNode& node, std::size_t number_size) {
  if (node.kind == DLRUN_CUDA_NOTHING) return 0;
  const std::int64_t numbers = plan.batch * node.channels * node.height * node.width;
  return static_cast<std::size_t>(numbers) * number_size;
}

// The last node of the forward pass that reads `index`; itself where nobody does.
std::size_t last_reader(const DlrunCudaPlan& plan, std::size_t index) {
  std::size_t last = index;
  for (std::size_t reader = index + 1; reader < plan.count; ++reader)
    for (std::size_t i = 0; i < plan.nodes[reader].input_count; ++i)
      if (plan.nodes[reader].inputs[i] == index) last = reader;
  return last;
}

// Whether backward of `node` looks at the value of its input number `which`, or of its own output.
bool looks_back_at_input(const DlrunCudaNode& node, std::size_t which) {
  return node.kind == DLRUN_CUDA_CONVOLUTION || node.kind == DLRUN_CUDA_LOCAL_RESPONSE_NORM ||
         node.kind == DLRUN_CUDA_NORM_POOL || (node.kind == DLRUN_CUDA_BATCH_NORM && which == 0);
}
bool looks_back_at_output(const DlrunCudaNode& node) {
  if (node.kind == DLRUN_CUDA_RELU) return true;
  return node.relu != 0 && (node.kind == DLRUN_CUDA_CONVOLUTION || node.kind == DLRUN_CUDA_ADD);
}

// When what a convolution's backward reads may go: its gradient of weights runs beside the way back until the
// next convolution there waits for it.
std::size_t settled(const DlrunCudaPlan& plan, std::size_t index) {
  const std::size_t backward = 2 * plan.count - 1 - index;
  if (plan.nodes[index].kind != DLRUN_CUDA_CONVOLUTION) return backward;
  for (std::size_t below = index; below-- > 0;)
    if (plan.nodes[below].kind == DLRUN_CUDA_CONVOLUTION) return 2 * plan.count - 1 - below;
  return 2 * plan.count - 1;
}

}  // namespace

Placement place(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  Placement out{std::vector<std::size_t>(lifetimes.size()), 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t which : order) {
    if (lifetimes[which].bytes == 0) continue;
    std::size_t at = 0;
    for (const std::size_t other : placed) {
      if (!meet(lifetimes[which], lifetimes[other])) continue;
      if (at + lifetimes[which].bytes <= out.offsets[other]) break;
      const std::size_t end = out.offsets[other] + lifetimes[other].bytes;
      at = std::max(at, (end + kLine - 1) / kLine * kLine);
    }
    out.offsets[which] = at;
    out.bytes = std::max(out.bytes, at + lifetimes[which].bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), at,
                         [&](std::size_t offset, std::size_t other) { return offset < out.offsets[other]; }),
        which);
  }
  return out;
}

std::vector<Lifetime> value_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size) {
  const auto backward_of = [&](std::size_t index) { return 2 * plan.count - 1 - index; };
  std::vector<Lifetime> out;
  for (std::size_t index = 0; index < plan.count; ++index) {
    Lifetime life{bytes_of(plan, plan.nodes[index], number_size), index, last_reader(plan, index)};
    if (looks_back_at_output(plan.nodes[index])) life.last = backward_of(index);
    for (std::size_t reader = plan.count; reader-- > index + 1;)
      for (std::size_t i = 0; i < plan.nodes[reader].input_count; ++i)
        if (plan.nodes[reader].inputs[i] == index && looks_back_at_input(plan.nodes[reader], i))
          life.last = std::max(life.last, settled(plan, reader));
    out.push_back(life);
  }
  return out;
}

// The loss leaves the gradient of the scores in its forward pass.
std::vector<Lifetime> gradient_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size) {
  std::vector<Lifetime> out;
  for (std::size_t index = 0; index < plan.count; ++index) {
    const std::size_t writer = last_reader(plan, index);
    Lifetime life{0, 2 * plan.count - 1 - writer, settled(plan, index)};
    if (plan.nodes[index].needs_gradient != 0) life.bytes = bytes_of(plan, plan.nodes[index], number_size);
    if (plan.nodes[writer].kind == DLRUN_CUDA_LOSS) life.first = writer;
    out.push_back(life);
  }
  return out;
}

}  // namespace dlrun::cuda
