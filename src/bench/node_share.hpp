// NodeShare: which nodes of the allocation are free. Points that run at the same time have different nodes.
// Pure.
#pragma once

#include <optional>
#include <vector>

#include "schedulers/allocation.hpp"

namespace dlrun::bench {

class NodeShare {
 public:
  explicit NodeShare(std::size_t nodes) : busy_(nodes, false) {}

  /// The first free nodes, which are busy from now on; unset where too few are free.
  std::optional<std::vector<std::size_t>> take(std::size_t count);
  std::size_t free() const;
  void give_back(const std::vector<std::size_t>& nodes);

 private:
  std::vector<bool> busy_;
};

/// The part of the allocation that has these nodes.
Allocation part_of(const Allocation& whole, const std::vector<std::size_t>& nodes);

}  // namespace dlrun::bench
