// NodeGradients: workers of one node add their gradients through the node's memory, in the order of their
// ranks and in f32, so that one of them sends for all; and the weights that it receives come to all.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/transport/common_memory.hpp"
#include "runtime/comm/transport/shared_memory.hpp"

namespace dlrun::runtime {

class NodeGradients {
 public:
  /// All workers call it. Null on all where no node has several of them, or they cannot share memory.
  static Result<std::unique_ptr<NodeGradients>> make(Communicator& workers, const Environment& environment);

  /// The ranks of this node among the workers, ascending: the first one sends.
  const std::vector<int>& members() const { return members_; }
  bool sends() const { return number_ == 0; }
  /// Of every worker: the rank of the one that sends for it.
  const std::vector<int>& sender_of() const { return sender_of_; }
  int nodes() const;

  /// The sum comes to the one that sends; what the others have then is not said.
  void add(std::span<float> gradients);
  /// From the one that sends to all.
  void share(std::span<float> numbers);

 private:
  NodeGradients(CommonMemory memory, std::vector<int> members, int number, std::vector<int> sender_of);
  Borders all_for_first(std::size_t length) const;

  CommonMemory memory_;
  std::vector<int> members_;
  int number_;
  std::vector<int> sender_of_;
  SharedMemoryAllreduce inside_;
};

}  // namespace dlrun::runtime
