// See shard_tree.hpp.
#include "runtime/comm/allreduce/shard_tree.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace dlrun::runtime {
namespace {

constexpr std::size_t kBlock = 1024;   // numbers: a few of these fit the first cache
constexpr std::size_t kMaxDepth = 32;  // of a tree over all shards that an int can count

void add(float* sum, const float* left, const float* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = left[i] + right[i];
}

bool are_siblings(const Subtree& left, const Subtree& right) {
  return left.level == right.level && left.index % 2 == 0 && right.index == left.index + 1;
}

// One block: terms are pushed in order, and the newest two become one as often as the plan says.
void add_block(const TreePlan& plan, std::span<const float* const> terms, std::size_t at, std::size_t count,
               float* sum) {
  std::array<std::array<float, kBlock>, kMaxDepth> partial;  // NOLINT: written before it is read
  std::array<const float*, kMaxDepth> stack{};
  std::size_t depth = 0;
  for (std::size_t term = 0; term < terms.size(); ++term) {
    stack[depth++] = terms[term] + at;
    for (int left = plan.additions[term]; left > 0; --left, --depth) {
      const bool is_whole = term + 1 == terms.size() && left == 1;
      float* const to = is_whole ? sum + at : partial[depth - 2].data();
      add(to, stack[depth - 2], stack[depth - 1], count);
      stack[depth - 2] = to;
    }
  }
}

}  // namespace

ShardRange shards_of(int shards, int rank, int ranks) {
  const auto border = [&](int r) { return static_cast<int>(static_cast<long long>(shards) * r / ranks); };
  return {border(rank), border(rank + 1)};
}

ShardTree::ShardTree(int shards) : shards_(shards) {
  while ((1LL << root_level_) < shards) ++root_level_;
}

// A node whose right sibling has no shard is its parent's sum as well.
Subtree ShardTree::without_empty_sibling(Subtree node) const {
  while (node.level < root_level_ && node.index % 2 == 0 &&
         (static_cast<long long>(node.index) + 1) << node.level >= shards_)
    node = {node.level + 1, node.index / 2};
  return node;
}

Reduction ShardTree::reduce(std::span<const Subtree> terms) const {
  Reduction out;
  for (const Subtree& term : terms) {
    out.left.push_back(without_empty_sibling(term));
    out.depth = std::max(out.depth, out.left.size());
    out.additions.push_back(0);
    while (out.left.size() > 1 && are_siblings(*(out.left.end() - 2), out.left.back())) {
      const Subtree& right = out.left.back();
      const Subtree sum = without_empty_sibling({right.level + 1, right.index / 2});
      out.left.pop_back();
      out.left.back() = sum;
      ++out.additions.back();
    }
  }
  return out;
}

Reduction ShardTree::reduce(const ShardRange& range) const {
  std::vector<Subtree> leaves;
  for (int shard = range.begin; shard < range.end; ++shard) leaves.push_back({0, shard});
  return reduce(leaves);
}

std::size_t TreePlan::most_terms() const {
  std::size_t most = 0;
  for (std::size_t rank = 0; rank + 1 < first.size(); ++rank)
    most = std::max(most, first[rank + 1] - first[rank]);
  return most;
}

TreePlan tree_plan(int shards, int ranks) {
  const ShardTree tree(shards);
  TreePlan out{.shards = shards, .first = {0}, .additions = {}};
  std::vector<Subtree> terms;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<Subtree> own = tree.reduce(shards_of(shards, rank, ranks)).left;
    terms.insert(terms.end(), own.begin(), own.end());
    out.first.push_back(terms.size());
  }
  out.additions = tree.reduce(terms).additions;
  return out;
}

TreeTerms piece_of(const TreeTerms& data, std::size_t begin, std::size_t length) {
  TreeTerms out{.plan = data.plan, .terms = data.terms, .sum = data.sum.subspan(begin)};
  out.sum = out.sum.first(std::min(length, out.sum.size()));
  for (const float*& term : out.terms) term += begin;
  return out;
}

void add_in_tree(const TreePlan& plan, std::span<const float* const> terms, float* sum, std::size_t count) {
  if (terms.size() == 1 && count > 0) std::memmove(sum, terms[0], count * sizeof(float));
  if (terms.size() == 1) return;
  for (std::size_t at = 0; at < count; at += kBlock)
    add_block(plan, terms, at, std::min(kBlock, count - at), sum);
}

}  // namespace dlrun::runtime
