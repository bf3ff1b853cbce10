// Several ranks as threads of the test: a Communicator that sums in rank order under one lock. Not fast, but
// every collective is the real one, and a rank that takes part in another order than the rest deadlocks or
// fails its length check, as with MPI.
#pragma once

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/comm/communicator.hpp"
#include "tests/unit/comm/thread_link.hpp"

namespace dlrun::test {

// In which order the ranks' numbers are added: of all numbers alike, or as a ring's links do, from another
// rank on in each part of an array.
enum class Addition { by_rank, by_place };

class ThreadWorld {
 public:
  explicit ThreadWorld(int size, Addition addition = Addition::by_rank)
      : spans_(static_cast<std::size_t>(size)),
        size_(size),
        addition_(addition),
        post_(size, SendIsDone::at_once) {}
  int size() const { return size_; }
  /// Messages of an order of their own.
  Post& messages() { return post_; }
  Addition addition() const { return addition_; }
  /// That are complete.
  int collectives() {
    const std::lock_guard lock(mutex_);
    return round_;
  }

  void post(int from, int to, std::span<const std::byte> data) {
    const std::lock_guard lock(mutex_);
    mail_[{from, to}].emplace_back(data.begin(), data.end());
    all_here_.notify_all();
  }
  void take(int from, int to, std::span<std::byte> data) {
    std::unique_lock lock(mutex_);
    auto& queue = mail_[{from, to}];
    all_here_.wait(lock, [&] { return !queue.empty(); });
    if (queue.front().size() != data.size()) std::abort();  // ranks disagree about what they exchange
    std::copy(queue.front().begin(), queue.front().end(), data.begin());
    queue.pop_front();
  }

  // Each rank gives a span; `combine` runs once over all of them; then all ranks continue.
  template <class Combine>
  void collective(int rank, std::span<std::byte> mine, Combine combine) {
    std::unique_lock lock(mutex_);
    spans_[static_cast<std::size_t>(rank)] = mine;
    const int round = round_;
    if (++arrived_ == size_) {
      combine(spans_);
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
      return;
    }
    all_here_.wait(lock, [&] { return round_ != round; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<std::span<std::byte>> spans_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> mail_;
  int size_, arrived_ = 0, round_ = 0;
  Addition addition_;
  Post post_;
};

class ThreadRank final : public runtime::Communicator {
 public:
  ThreadRank(std::shared_ptr<ThreadWorld> world, int rank)
      : world_(std::move(world)), rank_(rank), link_(world_->messages(), rank) {}
  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  std::string description() const override { return "threads"; }
  runtime::ElasticWorld* elastic() override { return elastic_world; }
  runtime::ElasticWorld* elastic_world = nullptr;
  /// That the ranks have made together.
  int collectives() const { return world_->collectives(); }

  Result<void> allreduce_start(std::span<float> data, runtime::CommDtype dtype) override {
    std::vector<std::byte> packed(runtime::bytes_of(dtype, data.size()));
    runtime::pack_rounding(dtype, packed.data(), data.data(), data.size());
    TRY(sum(data));
    runtime::pack_rounding(dtype, packed.data(), data.data(), data.size());
    return {};
  }
  Result<void> parameter_server_allreduce_start(std::span<const runtime::ServedPiece> pieces) override {
    for (const runtime::ServedPiece& piece : pieces) TRY(sum(piece.data));
    return {};
  }
  Result<void> tree_allreduce_start(const runtime::TreeTerms& data) override {
    runtime::TreeTerms mine = data;
    world_->collective(rank_, std::as_writable_bytes(std::span(&mine, 1)), add_trees);
    return {};
  }
  Result<void> wait_all() override { return {}; }
  Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine,
                              runtime::CommDtype dtype) override {
    std::vector<float> all(data.begin(), data.end());
    TRY(allreduce_start(all, dtype));
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank_, mine.size(), mine.begin());
    return {};
  }
  // The other parts become what a training must not use.
  Result<void> reduce_scatter_start(std::span<float> data, std::span<const std::size_t> borders,
                                    runtime::CommDtype dtype) override {
    std::vector<float> sum(data.begin(), data.end());
    TRY(allreduce_start(sum, dtype));
    const auto rank = static_cast<std::size_t>(rank_);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = i >= borders[rank] && i < borders[rank + 1] ? sum[i] : NAN;
    return {};
  }
  Result<void> allgather_start(std::span<float> data, std::span<const std::size_t> borders) override {
    world_->collective(rank_, std::as_writable_bytes(data), [borders](auto& spans) {
      for (std::size_t from = 0; from < spans.size(); ++from)
        for (std::size_t to = 0; to < spans.size(); ++to)
          if (from != to && borders[from] < borders[from + 1])
            std::memcpy(spans[to].data() + borders[from] * sizeof(float),
                        spans[from].data() + borders[from] * sizeof(float),
                        (borders[from + 1] - borders[from]) * sizeof(float));
    });
    return {};
  }
  Result<void> send(std::span<const std::byte> data, int to) override {
    world_->post(rank_, to, data);
    return {};
  }
  Result<void> receive(std::span<std::byte> data, int from) override {
    world_->take(from, rank_, data);
    return {};
  }
  Result<void> exchange_start(Exchange exchange) override { return exchange(link_); }
  Result<std::unique_ptr<runtime::Communicator>> split(int color, int key) override {
    SplitRequest mine{color, key, rank_, world_};
    world_->collective(rank_, std::as_writable_bytes(std::span(&mine, 1)), make_groups);
    return std::make_unique<ThreadRank>(std::move(mine.world), mine.rank);
  }
  void give_up() override {}
  Result<void> allreduce(std::span<double> data) override { return sum(data); }
  Result<void> broadcast(std::span<std::byte> data, int root) override {
    world_->collective(rank_, data, [root](auto& spans) {
      const auto from = spans[static_cast<std::size_t>(root)];
      for (auto& to : spans)
        if (to.data() != from.data()) std::memcpy(to.data(), from.data(), from.size());
    });
    return {};
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::memcpy(all.data() + static_cast<std::size_t>(rank_) * mine.size(), mine.data(), mine.size());
    const std::size_t part = mine.size();
    world_->collective(rank_, all, [part](auto& spans) {
      for (auto& to : spans)
        for (std::size_t r = 0; r < spans.size(); ++r)
          if (to.data() != spans[r].data())
            std::memcpy(to.data() + r * part, spans[r].data() + r * part, part);
    });
    return {};
  }
  Result<void> barrier() override {
    world_->collective(rank_, {}, [](auto&) {});
    return {};
  }
  [[noreturn]] void abort(int) override { std::abort(); }
  Result<void> finish() override { return barrier(); }

 private:
  template <class Number>
  Result<void> sum(std::span<Number> data) {
    const bool by_place = world_->addition() == Addition::by_place;
    world_->collective(rank_, std::as_writable_bytes(data), [by_place](auto& spans) {
      const std::size_t count = spans[0].size() / sizeof(Number), ranks = spans.size();
      std::vector<Number> total(count);
      for (std::size_t term = 0; term < ranks; ++term) {
        if (spans[term].size() != spans[0].size()) std::abort();  // ranks disagree about what they sum
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t rank = by_place ? (i * ranks / count + term) % ranks : term;
          total[i] += reinterpret_cast<const Number*>(spans[rank].data())[i];
        }
      }
      for (auto& span : spans) std::memcpy(span.data(), total.data(), span.size());
    });
    return {};
  }
  static void add_trees(std::vector<std::span<std::byte>>& spans) {
    std::vector<const float*> terms;
    const auto of = [](std::span<std::byte> span) -> const runtime::TreeTerms& {
      return *reinterpret_cast<const runtime::TreeTerms*>(span.data());
    };
    for (auto& span : spans) terms.insert(terms.end(), of(span).terms.begin(), of(span).terms.end());
    std::vector<float> sum(of(spans[0]).sum.size());
    if (terms.size() != of(spans[0]).plan->terms()) std::abort();  // ranks disagree about who has what
    runtime::add_in_tree(*of(spans[0]).plan, terms, sum.data(), sum.size());
    for (auto& span : spans) std::copy(sum.begin(), sum.end(), of(span).sum.begin());
  }
  // The color and key of a rank, and its world; in the end its group and its rank there.
  struct SplitRequest {
    int color, key, rank;
    std::shared_ptr<ThreadWorld> world;
  };
  static void make_groups(std::vector<std::span<std::byte>>& spans) {
    std::map<int, std::vector<SplitRequest*>> groups;
    for (auto& span : spans) {
      auto* const request = reinterpret_cast<SplitRequest*>(span.data());
      groups[request->color].push_back(request);
    }
    for (auto& [color, members] : groups) {
      std::stable_sort(
          members.begin(), members.end(),
          [](const SplitRequest* left, const SplitRequest* right) { return left->key < right->key; });
      const auto world =
          std::make_shared<ThreadWorld>(static_cast<int>(members.size()), members.front()->world->addition());
      for (std::size_t i = 0; i < members.size(); ++i) {
        members[i]->world = world;
        members[i]->rank = static_cast<int>(i);
      }
    }
  }

  std::shared_ptr<ThreadWorld> world_;
  int rank_;
  ThreadLink link_;
};

// Runs `body(rank's communicator)` on each rank of a world and joins them.
template <class Body>
void on_ranks(int size, Body body, Addition addition = Addition::by_rank) {
  const auto world = std::make_shared<ThreadWorld>(size, addition);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&world, &body, rank] {
      ThreadRank comm(world, rank);
      body(comm);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace dlrun::test
