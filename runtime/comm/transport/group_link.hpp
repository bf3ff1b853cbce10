// GroupLink: some ranks of a Transport as a world of their own, numbered in their order, so that collectives
// go over them alone. It adds no labels to messages: ranks that share several groups exchange the messages of
// all of them in one order.
#pragma once

#include <algorithm>

#include "runtime/comm/transport/transport.hpp"

namespace dlrun::runtime {

class GroupLink final : public Transport {
 public:
  /// `group` has the world's own rank in it, and outlives this.
  GroupLink(Transport& world, std::span<const int> group)
      : world_(world),
        group_(group),
        rank_(static_cast<int>(std::find(group.begin(), group.end(), world.rank()) - group.begin())) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_.size()); }
  Result<Ticket> send_start(std::span<const std::byte> data, int to) override {
    return world_.send_start(data, group_[static_cast<std::size_t>(to)]);
  }
  Result<Ticket> receive_start(std::span<std::byte> data, int from) override {
    return world_.receive_start(data, group_[static_cast<std::size_t>(from)]);
  }
  Result<void> wait(Ticket ticket) override { return world_.wait(ticket); }
  Result<std::size_t> wait_any(std::span<const Ticket> tickets) override { return world_.wait_any(tickets); }

 private:
  Transport& world_;
  std::span<const int> group_;
  int rank_;
};

}  // namespace dlrun::runtime
