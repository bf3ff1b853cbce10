// ShardTree: the one order in which what the shards of a global batch give is added, whatever rank computes
// which shard: a binary tree over the shards, where a node adds its left half to its right half. A rank adds
// the subtrees of its own shards by itself; the rest is added between ranks (tree_allreduce.cpp). So the sum
// has the same bits at any number of ranks. Pure: it says what is added to what, and moves no numbers but in
// add_in_tree().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace dlrun::runtime {

/// Shards that follow each other: [begin, end).
struct ShardRange {
  int begin = 0, end = 0;
  int count() const { return end - begin; }
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

/// The shards that a rank computes: as even as the numbers allow.
ShardRange shards_of(int shards, int rank, int ranks);

/// A node of the tree: the shards from index << level on, 1 << level of them or as many as there are.
struct Subtree {
  int level = 0, index = 0;
  friend bool operator==(const Subtree&, const Subtree&) = default;
};

/// What becomes of terms that are added one after the other, as far as the tree allows.
struct Reduction {
  /// Behind each term: how often the newest two of what is there become one.
  std::vector<int> additions;
  std::vector<Subtree> left;  // what is there in the end
  std::size_t depth = 0;      // how many are there at most
};

class ShardTree {
 public:
  explicit ShardTree(int shards);
  int shards() const { return shards_; }
  /// Of terms that follow each other.
  Reduction reduce(std::span<const Subtree> terms) const;
  /// Of the shards of a range.
  Reduction reduce(const ShardRange& range) const;

 private:
  Subtree without_empty_sibling(Subtree node) const;
  int shards_, root_level_ = 0;
};

/// Who has which terms of the whole sum: the same on all ranks.
struct TreePlan {
  int shards = 1;
  std::vector<std::size_t> first;  // the number of each rank's first term, and of all terms
  std::vector<int> additions;      // behind each term
  std::size_t terms_of(int rank) const {
    return first[static_cast<std::size_t>(rank) + 1] - first[static_cast<std::size_t>(rank)];
  }
  std::size_t terms() const { return first.back(); }
  std::size_t most_terms() const;  // of one rank
};

/// With shards_of() for each rank.
TreePlan tree_plan(int shards, int ranks);

/// This rank's part of a sum.
struct TreeTerms {
  const TreePlan* plan = nullptr;   // outlives the sum
  std::vector<const float*> terms;  // as the plan has them, each of sum.size() numbers
  std::span<float> sum;             // may lie where one of the terms lies
};

/// The numbers [begin, begin + length) of it, or as many as there are.
TreeTerms piece_of(const TreeTerms& data, std::size_t begin, std::size_t length);

/// Adds `count` numbers of all terms of the plan into `sum`, which may be one of them.
void add_in_tree(const TreePlan& plan, std::span<const float* const> terms, float* sum, std::size_t count);

}  // namespace dlrun::runtime
