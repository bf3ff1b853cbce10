// Copies between ranks that only exchange messages: from one to all, and from each to all. All ranks call the
// same one with the same lengths.
#pragma once

#include "runtime/comm/transport/transport.hpp"

namespace dlrun::runtime {

// Down a binomial tree.
Result<void> tree_broadcast(Transport& link, std::span<std::byte> data, int root);
// `mine` of every rank, in rank order, into `all`. Every rank sends to every other: for what is small.
Result<void> direct_allgather(Transport& link, std::span<const std::byte> mine, std::span<std::byte> all);

}  // namespace dlrun::runtime
