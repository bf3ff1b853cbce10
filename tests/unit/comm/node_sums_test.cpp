// Sums inside nodes first, with threads in the place of ranks and memory in common by nodes: the right sums,
// the same bits on all ranks, and fewer bytes between nodes.
#include "runtime/comm/allreduce/node_sums.hpp"

#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "runtime/comm/allreduce/algorithms.hpp"
#include "tests/unit/comm/arrays.hpp"
#include "tests/unit/comm/thread_link.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// Counts what goes to ranks of other nodes.
class CountingLink final : public Transport {
 public:
  CountingLink(Transport& link, std::vector<std::uint64_t> node_of, std::atomic<std::size_t>& bytes)
      : link_(link), node_of_(std::move(node_of)), bytes_(bytes) {}
  int rank() const override { return link_.rank(); }
  int size() const override { return link_.size(); }
  Result<Ticket> send_start(std::span<const std::byte> data, int to) override {
    if (node(to) != node(rank())) bytes_ += data.size();
    return link_.send_start(data, to);
  }
  Result<Ticket> receive_start(std::span<std::byte> data, int from) override {
    return link_.receive_start(data, from);
  }
  Result<void> wait(Ticket ticket) override { return link_.wait(ticket); }
  Result<std::size_t> wait_any(std::span<const Ticket> tickets) override { return link_.wait_any(tickets); }

 private:
  std::uint64_t node(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  Transport& link_;
  std::vector<std::uint64_t> node_of_;
  std::atomic<std::size_t>& bytes_;
};

struct Summed {
  Arrays arrays;
  std::size_t bytes;  // between nodes
};

using Sum = std::function<Result<void>(NodeSums& sums, Transport& link, std::span<float> data)>;

Summed summed(Arrays arrays, const std::vector<std::uint64_t>& node_of, const Sum& sum) {
  std::map<std::uint64_t, CommonMemory> memory;
  for (const std::uint64_t node : node_of)
    if (!memory.contains(node))
      memory.emplace(
          node,
          std::move(*CommonMemory::make(SharedMemoryAllreduce::bytes(static_cast<int>(node_of.size())))));
  std::atomic<std::size_t> bytes{0};
  on_linked_ranks(static_cast<int>(node_of.size()), SendIsDone::when_received, [&](Transport& plain) {
    CountingLink link(plain, node_of, bytes);
    const auto rank = static_cast<std::size_t>(link.rank());
    NodeSums sums(link, node_groups_of(node_of, link.rank()).value(),
                  CommonMemory::open(memory.at(node_of[rank]).ticket()).value());
    if (!sum(sums, link, arrays[rank])) std::abort();
  });
  return {std::move(arrays), bytes};
}

Result<void> by_nodes(NodeSums& sums, Transport& /*link*/, std::span<float> data) {
  Scratch scratch;
  TRY(sums.allreduce(data, CommDtype::f32, scratch));
  return sums.allreduce(data.first(data.size() / 2), CommDtype::f32, scratch);  // one behind the other
}

void check_sums(const Arrays& sums, const Arrays& arrays, const std::function<double(std::size_t)>& times) {
  for (std::size_t i = 0; i < arrays[0].size(); ++i) {
    double exact = 0, size = 0;
    for (const auto& array : arrays) {
      exact += static_cast<double>(array[i]);
      size += std::abs(static_cast<double>(array[i]));
    }
    REQUIRE(std::abs(static_cast<double>(sums[0][i]) - times(i) * exact) <= 1e-6 * times(i) * size);
  }
  for (const auto& other : sums) CHECK(other == sums[0]);
}

const std::vector<std::vector<std::uint64_t>> kWorlds{
    {0, 0, 1, 1}, {7, 8, 7, 8, 7, 8}, {0, 0, 1, 1, 2, 2, 3, 3}};

}  // namespace

TEST_CASE("every rank has the sum of all, whatever the length and the order of the ranks") {
  for (const auto& node_of : kWorlds)
    for (const std::size_t length :
         {std::size_t{1}, std::size_t{17}, std::size_t{1000}, std::size_t{300'011}}) {
      CAPTURE(length);
      const Arrays arrays = random_arrays(static_cast<int>(node_of.size()), length, 10);
      const Summed out = summed(arrays, node_of, by_nodes);
      const auto ranks = static_cast<double>(node_of.size());
      check_sums(out.arrays, arrays, [&](std::size_t i) { return i < length / 2 ? ranks : 1; });
    }
}

TEST_CASE("servers add one term of each node") {
  for (const auto& node_of : kWorlds) {
    const std::size_t length = 150'000;
    const int ranks = static_cast<int>(node_of.size());
    const Arrays arrays = random_arrays(ranks, length, 11);
    const auto serve = [&](bool inside_first) {
      return summed(arrays, node_of, [&](NodeSums& sums, Transport& link, std::span<float> data) {
        const std::vector<ServedPiece> pieces{{data.first(70'000), 0}, {data.subspan(70'000), ranks - 1}};
        Scratch scratch;
        return inside_first ? sums.serve(pieces, scratch) : parameter_server_allreduce(link, pieces, scratch);
      });
    };
    const Summed plain = serve(false), out = serve(true);
    check_sums(out.arrays, arrays, [](std::size_t) { return 1.0; });
    CHECK(out.bytes < plain.bytes);
    const std::size_t nodes = std::set(node_of.begin(), node_of.end()).size();
    CHECK(out.bytes == 2 * (nodes - 1) * length * sizeof(float));
  }
}

TEST_CASE("who waits for a rank of its node that is gone asks for it by its number in the world, and fails") {
  const std::vector<std::uint64_t> node_of{0, 1, 1, 0};
  const CommonMemory memory = CommonMemory::make(SharedMemoryAllreduce::bytes(2)).value();
  std::vector<int> asked;
  std::vector<Result<void>> ended;
  on_linked_ranks(4, SendIsDone::when_received, [&](Transport& link) {
    if (link.rank() != 0) return;
    NodeSums sums(link, node_groups_of(node_of, 0).value(), CommonMemory::open(memory.ticket()).value(),
                  [&](int rank) {
                    asked.push_back(rank);
                    return std::optional(Error{.kind = ErrorKind::lost, .what = "gone"});
                  });
    std::vector<float> data(1000, 1);
    Scratch scratch;
    ended.push_back(sums.allreduce(data, CommDtype::f32, scratch));
    const std::vector<ServedPiece> pieces{{std::span(data), 0}};
    ended.push_back(sums.serve(pieces, scratch));
  });
  CHECK(asked == std::vector{3});
  for (const Result<void>& one : ended) {
    REQUIRE(!one);
    CHECK(one.error().kind == ErrorKind::lost);
  }
}

TEST_CASE("in 16 bits, what crosses between nodes is less than by a direct exchange of all ranks") {
  const std::vector<std::uint64_t>& node_of = kWorlds.back();
  const Arrays arrays = random_arrays(8, 400'000, 12);
  const auto sum = [&](bool inside_first) {
    return summed(arrays, node_of, [&](NodeSums& sums, Transport& link, std::span<float> data) {
      Scratch scratch;
      return inside_first ? sums.allreduce(data, CommDtype::bf16, scratch)
                          : allreduce_by_size(link, data, CommDtype::bf16, scratch);
    });
  };
  const Summed plain = sum(false), out = sum(true);
  for (const auto& other : out.arrays) CHECK(other == out.arrays[0]);
  for (std::size_t i = 0; i < arrays[0].size(); i += 1000)
    CHECK(std::abs(out.arrays[0][i] - plain.arrays[0][i]) <= 1);  // of terms around 10, rounded to 8 bits
  CHECK(out.bytes * 2 <= plain.bytes);
}
