// SharedMemoryAllreduce: the sum of equal float arrays over the ranks of one node, through memory that all of
// them see, and their barrier. Each rank adds its own share of a piece, in the order of the ranks, so the
// same world gives the same bits. It needs no system call where ranks have a core each. Who waits for long
// asks whether the other rank is still there, if it is told how; else the launcher notices a dead one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "runtime/base/comm_dtype.hpp"
#include "runtime/comm/allreduce/partition.hpp"
#include "runtime/comm/allreduce/shard_tree.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

class SharedMemoryAllreduce {
 public:
  /// Bytes of zeroed common memory that `ranks` ranks need.
  static std::size_t bytes(int ranks);

  SharedMemoryAllreduce(void* memory, int rank, int ranks);

  /// Why a rank will never come; unset while it may.
  using Lost = std::function<std::optional<Error>(int rank)>;
  void set_lost(Lost lost) { lost_ = std::move(lost); }
  /// The Error of a rank that was lost: no sum is right from then on, and no call waits.
  Result<void> state() const { return failure_ ? Result<void>(fail(*failure_)) : Result<void>{}; }

  /// Called by all ranks with arrays of one length and one dtype; in place. On a 16-bit dtype the terms of
  /// other ranks are rounded, and the sum once more.
  void allreduce(std::span<float> data, CommDtype dtype = CommDtype::f32);
  /// The same in the order of a tree over the shards of the ranks, in f32.
  void allreduce(const TreeTerms& data);
  /// Each rank's own part of `data` becomes the sum, in the order of the ranks and in f32; the terms of other
  /// ranks are rounded to `dtype`.
  void reduce_scatter(std::span<float> data, const Borders& borders, CommDtype dtype);
  /// Every rank's part of `data` comes to all.
  void allgather(std::span<float> data, const Borders& borders);
  /// No rank returns before all have come.
  void barrier();

 private:
  struct Flags;
  void sum_piece(std::span<float> data, CommDtype dtype);
  void stage(const TreeTerms& data, std::size_t space);
  void sum_own_share(const TreeTerms& data, std::size_t space);
  void sum_tree_piece(const TreeTerms& data, std::size_t space);
  const float* staged_term(const TreePlan& plan, std::size_t number, std::size_t space) const;
  void sum_share(std::span<float> data, Part share);
  void sum_in_order(float* data, CommDtype dtype, std::size_t place, std::size_t count);
  void sum_packed_share(std::span<float> data, CommDtype dtype, Part share);
  std::byte* slot(int rank, CommDtype dtype,
                  std::size_t at) const;  // number `at` of the half this piece uses
  void await(const std::atomic<std::uint64_t>& flag, int rank);
  void post_staged();
  void post_summed();
  void await_staged();
  void await_summed();

  Flags* flags_;
  std::byte* slots_;
  int rank_;
  int ranks_;
  std::size_t turn_ = 0;  // pieces so far: the value that the flags take
  Lost lost_;
  std::optional<Error> failure_;
};

}  // namespace dlrun::runtime
