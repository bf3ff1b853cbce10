// ShardSums: a rank's part of the exact sum over the shards of a global batch (shard_tree.hpp). The engine
// computes the rank's shards one after the other and leaves each one's gradients in its arena; here they are
// added as far as the tree allows, and what may not be added yet is kept aside. With the last shard the rest
// goes to the other ranks, bucket by bucket. A rank with one shard keeps nothing. Where a shard has several
// batches per update, each of them is a term of the tree as a shard is. An engine on a device that sums its
// gradients there leaves the totals alone to this.
#pragma once

#include <memory>
#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

/// The batches of an update.
struct ShardBatches {
  int shards = 1, per_shard = 1;
  int all() const { return shards * per_shard; }
};

/// An Error where there are fewer shards than ranks.
Result<void> check_shards(int shards, int ranks);

class ShardSums {
 public:
  /// As check_shards().
  static Result<std::unique_ptr<ShardSums>> make(const ShardBatches& of, Engine& engine, Communicator& comm);
  ShardSums(const ShardSums&) = delete;
  ShardSums& operator=(const ShardSums&) = delete;

  const ShardBatches& of() const { return of_; }
  /// The batches of this rank.
  const ShardRange& range() const { return range_; }
  /// A step begins: nothing of another is left.
  void begin();
  /// The arena has all gradients and totals of a shard that is not the rank's last one.
  void keep();
  /// These numbers of the arena are the last shard's: starts their sum over all ranks.
  Result<void> start(std::span<float> numbers);

 private:
  ShardSums(const ShardBatches& of, Engine& engine, Communicator& comm);
  Result<void> make_buffers();
  std::span<float> summed_part() const;
  float* kept(std::size_t number) const { return reinterpret_cast<float*>(kept_[number].data()); }
  std::size_t add_kept(std::size_t shard, std::span<float> numbers);

  ShardBatches of_;
  Engine& engine_;
  Communicator& comm_;
  ShardRange range_;
  Reduction own_;  // of the rank's shards
  TreePlan plan_;  // sums under way read it
  std::vector<HugeBuffer> kept_;
  std::size_t done_ = 0, depth_ = 0;  // shards of the step; sums kept
};

}  // namespace dlrun::runtime
