// Collectives of ranks that only exchange messages, but for allreduce (allreduce/algorithms.hpp). All ranks
// call the same one with the same lengths. What is added is added in the order of the ranks.
#pragma once

#include "runtime/base/comm_dtype.hpp"
#include "runtime/comm/allreduce/allreduce.hpp"
#include "runtime/comm/allreduce/partition.hpp"
#include "runtime/comm/transport/transport.hpp"

namespace dlrun::runtime {

/// No rank returns before all have come (dissemination: after round k each rank has heard, through others, of
/// 2^k ranks; Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988). Waiting leaves
/// the processor alone.
Result<void> dissemination_barrier(Transport& link);

/// Down a binomial tree.
Result<void> tree_broadcast(Transport& link, std::span<std::byte> data, int root);

/// `mine` of every rank, in rank order, into `all`. Every rank sends to every other: for what is small.
Result<void> direct_allgather(Transport& link, std::span<const std::byte> mine, std::span<std::byte> all);

/// `data` has a block of mine.size() floats for each rank; `mine` becomes the sum of this rank's block, in
/// f32, over the ranks 0, 1, 2, ... in this order. The terms of other ranks travel as `dtype`. `mine` may be
/// this rank's block of `data`.
Result<void> direct_reduce_scatter(Transport& link, std::span<const float> data, std::span<float> mine,
                                   CommDtype dtype, Scratch& scratch);

/// The same in place and of parts of any lengths: each rank's own part of `data` becomes the sum.
Result<void> direct_reduce_scatter(Transport& link, std::span<float> data, const Borders& borders,
                                   CommDtype dtype, Scratch& scratch);
/// Every rank's part of `data` comes to all: each sends its own to every other.
Result<void> direct_allgather(Transport& link, std::span<float> data, const Borders& borders);

/// Errors where the lengths that one rank gives do not fit each other.
Result<void> check_allgather(std::size_t mine, std::size_t all, int ranks);
Result<void> check_reduce_scatter(std::size_t data, std::size_t mine, int ranks);
Result<void> check_borders(std::span<const std::size_t> borders, std::size_t data, int ranks);

}  // namespace dlrun::runtime
