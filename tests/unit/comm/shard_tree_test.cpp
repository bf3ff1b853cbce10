// The exact sum over shards: one tree, whichever ranks have which shards, in memory, by messages and through
// shared memory.
#include "runtime/comm/allreduce/shard_tree.hpp"

#include <cstring>
#include <thread>

#include <doctest/doctest.h>

#include "runtime/comm/allreduce/allreduce.hpp"
#include "runtime/comm/transport/shared_memory.hpp"
#include "tests/unit/comm/arrays.hpp"
#include "tests/unit/comm/thread_link.hpp"

namespace dlrun::runtime {
namespace {

// By the definition: a node is its left half plus its right half.
std::vector<float> sum_of_node(const Arrays& shards, std::size_t begin, std::size_t width) {
  if (width == 1) return shards[begin];
  std::vector<float> sum = sum_of_node(shards, begin, width / 2);
  if (begin + width / 2 >= shards.size()) return sum;
  const std::vector<float> right = sum_of_node(shards, begin + width / 2, width / 2);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

std::vector<float> tree_sum(const Arrays& shards) {
  std::size_t width = 1;
  while (width < shards.size()) width *= 2;
  return sum_of_node(shards, 0, width);
}

// What a rank has: its shards, added as far as the tree allows.
Arrays own_terms(const Arrays& shards, const ShardRange& range) {
  const Reduction own = ShardTree(static_cast<int>(shards.size())).reduce(range);
  Arrays out;
  for (int shard = range.begin; shard < range.end; ++shard) {
    out.push_back(shards[static_cast<std::size_t>(shard)]);
    for (int left = own.additions[static_cast<std::size_t>(shard - range.begin)]; left > 0; --left) {
      const std::vector<float> right = out.back();
      out.pop_back();
      for (std::size_t i = 0; i < right.size(); ++i) out.back()[i] += right[i];
    }
  }
  CHECK(out.size() == own.left.size());
  return out;
}

// As ranks call it: the sum lies where the last term lay.
template <class Sum>
std::vector<float> sum_on_rank(const Arrays& shards, const TreePlan& plan, int rank, int ranks,
                               const Sum& sum) {
  Arrays own = own_terms(shards, shards_of(plan.shards, rank, ranks));
  TreeTerms terms{.plan = &plan, .terms = {}, .sum = own.back()};
  for (const auto& term : own) terms.terms.push_back(term.data());
  sum(terms);
  return own.back();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

struct Case {
  int shards, ranks;
};
constexpr Case kCases[] = {{2, 2}, {3, 2}, {5, 3}, {6, 4}, {7, 7}, {8, 2}, {8, 3}, {8, 5}, {8, 8}, {13, 5}};

}  // namespace

TEST_CASE("ranks share the shards evenly, and each has the fewest subtrees") {
  CHECK(shards_of(8, 0, 3) == ShardRange{0, 2});
  CHECK(shards_of(8, 2, 3) == ShardRange{5, 8});
  const ShardTree tree(8);
  CHECK(tree.reduce({0, 8}).left == std::vector<Subtree>{{3, 0}});
  CHECK(tree.reduce({5, 8}).left == std::vector<Subtree>{{0, 5}, {1, 3}});
  CHECK(tree.reduce({0, 8}).depth == 4);
  CHECK(ShardTree(5).reduce({4, 5}).left == std::vector<Subtree>{{2, 1}});  // a half that has one shard
  CHECK(ShardTree(1).reduce({0, 1}).left == std::vector<Subtree>{{0, 0}});
}

TEST_CASE("any division of the shards over ranks gives the bits of the tree") {
  for (int shards = 1; shards <= 17; ++shards) {
    const Arrays arrays = random_arrays(shards, 33, 1000);
    const std::vector<float> expected = tree_sum(arrays);
    for (int ranks = 1; ranks <= shards; ++ranks) {
      CAPTURE(shards);
      CAPTURE(ranks);
      const TreePlan plan = tree_plan(shards, ranks);
      std::vector<float> sum(33);
      Arrays terms;
      for (int rank = 0; rank < ranks; ++rank)
        for (auto& term : own_terms(arrays, shards_of(shards, rank, ranks))) terms.push_back(std::move(term));
      std::vector<const float*> places;
      for (const auto& term : terms) places.push_back(term.data());
      REQUIRE(places.size() == plan.terms());
      add_in_tree(plan, places, sum.data(), sum.size());
      CHECK(same_bits(sum, expected));
    }
  }
}

TEST_CASE("it is not the sum in the order of the shards: the test could tell") {
  const Arrays arrays = random_arrays(8, 1000, 1000);
  CHECK_FALSE(same_bits(tree_sum(arrays), sum_in_rank_order(arrays)));
}

TEST_CASE("messages bring the sum of the tree to every rank, whatever the length") {
  for (const auto send : {test::SendIsDone::at_once, test::SendIsDone::when_received})
    for (const auto& sizes : kCases)
      for (const std::size_t length : {0U, 1U, 17U, 1000U, 70'000U}) {
        const int shards = sizes.shards, ranks = sizes.ranks;
        CAPTURE(shards);
        CAPTURE(ranks);
        CAPTURE(length);
        const Arrays arrays = random_arrays(shards, length, 1000);
        const std::vector<float> expected = tree_sum(arrays);
        const TreePlan plan = tree_plan(shards, ranks);
        std::vector<int> right(static_cast<std::size_t>(ranks), 0);
        test::on_linked_ranks(ranks, send, [&, many = ranks](test::ThreadLink& link) {
          Scratch scratch;
          bool sent = false;
          const auto sum = sum_on_rank(arrays, plan, link.rank(), many, [&](const TreeTerms& terms) {
            sent = tree_allreduce(link, terms, scratch).has_value();
          });
          right[static_cast<std::size_t>(link.rank())] = sent && same_bits(sum, expected) ? 1 : 0;
        });
        for (const int one : right) CHECK(one == 1);
      }
}

TEST_CASE("a sum of many pieces keeps them apart") {
  const Arrays arrays = random_arrays(4, 1'500'000, 1);
  const std::vector<float> expected = tree_sum(arrays);
  const TreePlan plan = tree_plan(4, 3);
  std::vector<int> right(3, 0);
  test::on_linked_ranks(3, test::SendIsDone::when_received, [&](test::ThreadLink& link) {
    Scratch scratch;
    const auto sum = sum_on_rank(arrays, plan, link.rank(), 3,
                                 [&](const TreeTerms& terms) { (void)tree_allreduce(link, terms, scratch); });
    right[static_cast<std::size_t>(link.rank())] = same_bits(sum, expected) ? 1 : 0;
  });
  CHECK(right == std::vector<int>{1, 1, 1});
}

TEST_CASE("shared memory brings the same, in turn with other sums") {
  for (const auto& sizes : kCases)
    for (const std::size_t length : {0U, 1U, 1000U, 64U * 1024U + 1U, 150'001U}) {
      const int shards = sizes.shards, ranks = sizes.ranks;
      CAPTURE(shards);
      CAPTURE(ranks);
      CAPTURE(length);
      const Arrays arrays = random_arrays(shards, length, 1000);
      const std::vector<float> expected = tree_sum(arrays);
      const TreePlan plan = tree_plan(shards, ranks);
      std::vector<char> memory(SharedMemoryAllreduce::bytes(ranks), 0);
      std::vector<int> right(static_cast<std::size_t>(ranks), 0);
      std::vector<std::thread> threads;
      for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank, many = ranks] {
          SharedMemoryAllreduce shared(memory.data(), rank, many);
          std::vector<float> ones(100, 1);
          shared.allreduce(ones);
          const auto sum =
              sum_on_rank(arrays, plan, rank, many, [&](const TreeTerms& terms) { shared.allreduce(terms); });
          shared.allreduce(ones);
          right[static_cast<std::size_t>(rank)] =
              same_bits(sum, expected) && ones[99] == static_cast<float>(many * many) ? 1 : 0;
        });
      for (std::thread& thread : threads) thread.join();
      for (const int one : right) CHECK(one == 1);
    }
}

}  // namespace dlrun::runtime
