// See node_gradients.hpp.
#include "runtime/train/servers/node_gradients.hpp"

#include <algorithm>

#include "runtime/comm/allreduce/nodes.hpp"
#include "runtime/comm/share_memory.hpp"

namespace dlrun::runtime {

NodeGradients::NodeGradients(CommonMemory memory, std::vector<int> members, int number,
                             std::vector<int> sender_of)
    : memory_(std::move(memory)),
      members_(std::move(members)),
      number_(number),
      sender_of_(std::move(sender_of)),
      inside_(memory_.data(), number_, static_cast<int>(members_.size())) {}

Result<std::unique_ptr<NodeGradients>> NodeGradients::make(Communicator& workers,
                                                           const Environment& environment) {
  const std::vector<std::uint64_t> node_of = TRY(gather_nodes(workers, environment));
  std::vector<int> sender_of, members;
  for (const std::uint64_t node : node_of)
    sender_of.push_back(static_cast<int>(std::find(node_of.begin(), node_of.end(), node) - node_of.begin()));
  const int first = sender_of[static_cast<std::size_t>(workers.rank())];
  for (int rank = 0; rank < workers.size(); ++rank)
    if (sender_of[static_cast<std::size_t>(rank)] == first) members.push_back(rank);
  const auto is_alone = [&](int rank) { return std::count(sender_of.begin(), sender_of.end(), rank) < 2; };
  if (std::all_of(sender_of.begin(), sender_of.end(), is_alone)) return nullptr;
  const auto node = TRY(workers.split(first, workers.rank()));
  auto memory = TRY(share_memory(workers, *node, SharedMemoryAllreduce::bytes(node->size())));
  if (!memory) return nullptr;
  return std::unique_ptr<NodeGradients>(
      new NodeGradients(std::move(*memory), std::move(members), node->rank(), std::move(sender_of)));
}

int NodeGradients::nodes() const {
  int out = 0;
  for (std::size_t rank = 0; rank < sender_of_.size(); ++rank)
    out += sender_of_[rank] == static_cast<int>(rank) ? 1 : 0;
  return out;
}

Borders NodeGradients::all_for_first(std::size_t length) const {
  Borders out(members_.size() + 1, length);
  out.front() = 0;
  return out;
}

void NodeGradients::add(std::span<float> gradients) {
  if (members_.size() > 1) inside_.reduce_scatter(gradients, all_for_first(gradients.size()), CommDtype::f32);
}

void NodeGradients::share(std::span<float> numbers) {
  if (members_.size() > 1) inside_.allgather(numbers, all_for_first(numbers.size()));
}

}  // namespace dlrun::runtime
