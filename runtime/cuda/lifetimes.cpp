// See lifetimes.hpp.
#include "runtime/cuda/lifetimes.hpp"

#include <algorithm>
#include <optional>

namespace dlrun::cuda {
namespace {

bool has(const DlrunCudaNode& node, DlrunCudaFact fact) {
  return (node.facts & fact) != 0;
}

std::size_t bytes_of(const DlrunCudaPlan& plan, const DlrunCudaNode& node, std::size_t number_size) {
  if (has(node, DLRUN_CUDA_IS_ELIDED)) return 0;
  const std::int64_t numbers = plan.batch * node.channels * node.height * node.width;
  return static_cast<std::size_t>(numbers) * number_size;
}

// Whether backward of `node` reads the value of its input number `which`.
bool backward_reads_input(const DlrunCudaNode& node, std::size_t which) {
  return has(node, DLRUN_CUDA_BACKWARD_READS_INPUTS) ||
         (has(node, DLRUN_CUDA_BACKWARD_READS_INPUT) && which == 0);
}

// When what a convolution's backward reads may go: its gradient of weights runs beside the way back until the
// next convolution there waits for it. One that no loss depends on does nothing on the way back.
std::size_t released(const DlrunCudaPlan& plan, std::size_t index) {
  const std::size_t backward = 2 * plan.count - 1 - index;
  if (!has(plan.nodes[index], DLRUN_CUDA_MULTIPLIES)) return backward;
  for (std::size_t below = index; below-- > 0;)
    if (has(plan.nodes[below], DLRUN_CUDA_MULTIPLIES) && plan.nodes[below].needs_gradient != 0)
      return 2 * plan.count - 1 - below;
  return 2 * plan.count - 1;
}

// Until when those read the value on the way back that do.
std::size_t read_until(const DlrunCudaPlan& plan, std::size_t index) {
  std::size_t last = 0;
  for (std::size_t reader = plan.count; reader-- > index + 1;)
    for (std::size_t i = 0; i < plan.nodes[reader].input_count; ++i)
      if (plan.nodes[reader].inputs[i] == index && backward_reads_input(plan.nodes[reader], i))
        last = std::max(last, released(plan, reader));
  return last;
}

// The first loss that reads the value, which leaves its gradient in the forward pass.
std::optional<std::size_t> first_loss(const DlrunCudaPlan& plan, std::size_t index) {
  for (std::size_t reader = index + 1; reader < plan.count; ++reader)
    if (has(plan.nodes[reader], DLRUN_CUDA_IS_LOSS) && plan.nodes[reader].inputs[0] == index) return reader;
  return std::nullopt;
}

// The first input that a node passes its gradient on to, with all behind it.
std::size_t first_passed(const DlrunCudaNode& node) {
  if (!has(node, DLRUN_CUDA_PASSES_GRADIENT)) return node.input_count;
  return has(node, DLRUN_CUDA_MULTIPLIES) ? 1 : 0;
}

}  // namespace

std::size_t last_reader(const DlrunCudaPlan& plan, std::size_t index) {
  std::size_t last = index;
  for (std::size_t reader = index + 1; reader < plan.count; ++reader)
    for (std::size_t i = 0; i < plan.nodes[reader].input_count; ++i)
      if (plan.nodes[reader].inputs[i] == index) last = reader;
  return last;
}

std::size_t first_reader(const DlrunCudaPlan& plan, std::size_t index) {
  for (std::size_t reader = index + 1; reader < plan.count; ++reader)
    for (std::size_t i = 0; i < plan.nodes[reader].input_count; ++i)
      if (plan.nodes[reader].inputs[i] == index) return reader;
  return index;
}

std::vector<Lifetime> value_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size) {
  const auto backward_of = [&](std::size_t index) { return 2 * plan.count - 1 - index; };
  std::vector<Lifetime> out;
  for (std::size_t index = 0; index < plan.count; ++index) {
    Lifetime life{bytes_of(plan, plan.nodes[index], number_size), index, last_reader(plan, index)};
    if (has(plan.nodes[index], DLRUN_CUDA_BACKWARD_READS_OUTPUT)) life.last = backward_of(index);
    if (!has(plan.nodes[index], DLRUN_CUDA_GATHERED_AGAIN))
      life.last = std::max(life.last, read_until(plan, index));
    out.push_back(life);
  }
  for (std::size_t index = 0; index < plan.count; ++index) {
    if (!has(plan.nodes[index], DLRUN_CUDA_GATHERED_AGAIN)) continue;
    Lifetime& from = out[plan.nodes[index].inputs[0]];
    from.last = std::max(from.last, backward_of(index));
  }
  for (std::size_t index = 0; index < plan.count; ++index)
    for (const std::size_t inner : {plan.nodes[index].inner, plan.nodes[index].input_inner})
      if (inner != DLRUN_CUDA_NOWHERE) out[inner].last = std::max(out[inner].last, backward_of(index));
  // What is detached lies where it is detached from.
  for (std::size_t index = plan.count; index-- > 0;) {
    if (!has(plan.nodes[index], DLRUN_CUDA_IN_PLACE)) continue;
    Lifetime& from = out[plan.nodes[index].inputs[0]];
    from.last = std::max(from.last, out[index].last);
    out[index].bytes = 0;
  }
  return out;
}

// From the backward of the first of its readers there.
std::vector<Lifetime> restored_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size) {
  std::vector<Lifetime> out(plan.count);
  for (std::size_t index = 0; index < plan.count; ++index)
    if (has(plan.nodes[index], DLRUN_CUDA_GATHERED_AGAIN))
      out[index] = {bytes_of(plan, plan.nodes[index], number_size),
                    2 * plan.count - 1 - last_reader(plan, index),
                    std::max(2 * plan.count - 1 - last_reader(plan, index), read_until(plan, index))};
  return out;
}

std::vector<std::size_t> gradient_holders(const DlrunCudaPlan& plan) {
  std::vector<std::size_t> out(plan.count);
  for (std::size_t index = 0; index < plan.count; ++index) out[index] = index;
  for (std::size_t index = plan.count; index-- > 0;)
    for (std::size_t i = first_passed(plan.nodes[index]); i < plan.nodes[index].input_count; ++i)
      out[plan.nodes[index].inputs[i]] = out[index];
  return out;
}

std::vector<Lifetime> gradient_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size) {
  std::vector<Lifetime> out;
  for (std::size_t index = 0; index < plan.count; ++index) {
    Lifetime life{0, 2 * plan.count - 1 - last_reader(plan, index), released(plan, index)};
    if (plan.nodes[index].needs_gradient != 0) life.bytes = bytes_of(plan, plan.nodes[index], number_size);
    if (const auto loss = first_loss(plan, index)) life.first = *loss;
    out.push_back(life);
  }
  const std::vector<std::size_t> holders = gradient_holders(plan);
  for (std::size_t index = 0; index < plan.count; ++index) {
    if (holders[index] == index || out[index].bytes == 0) continue;
    Lifetime& of_holder = out[holders[index]];
    of_holder.first = std::min(of_holder.first, out[index].first);
    of_holder.last = std::max(of_holder.last, out[index].last);
    out[index].bytes = 0;
  }
  return out;
}

}  // namespace dlrun::cuda
