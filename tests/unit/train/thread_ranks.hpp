// Several ranks as threads of the test: a Communicator that sums in rank order under one lock. Not fast, but
// every collective is the real one, and a rank that takes part in another order than the rest deadlocks or
// fails its length check, as with MPI.
#pragma once

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/comm/communicator.hpp"

namespace dlrun::test {

class ThreadWorld {
 public:
  explicit ThreadWorld(int size) : spans_(static_cast<std::size_t>(size)), size_(size) {}
  int size() const { return size_; }

  // All ranks hand in a span; `combine` runs once over all of them; then all go on.
  template <class Combine>
  void meet(int rank, std::span<std::byte> mine, Combine combine) {
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
  int size_, arrived_ = 0, round_ = 0;
};

class ThreadRank final : public runtime::Communicator {
 public:
  ThreadRank(ThreadWorld& world, int rank) : world_(world), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return world_.size(); }
  std::string description() const override { return "threads"; }

  Result<void> allreduce_start(std::span<float> data) override { return sum(data); }
  Result<void> rounded_allreduce_start(std::span<float> data, runtime::Wire wire) override {
    std::vector<std::byte> packed(runtime::bytes_of(wire, data.size()));
    runtime::pack_rounding(wire, packed.data(), data.data(), data.size());
    TRY(sum(data));
    runtime::pack_rounding(wire, packed.data(), data.data(), data.size());
    return {};
  }
  Result<void> served_sum_start(std::span<const runtime::ServedPiece> pieces) override {
    for (const runtime::ServedPiece& piece : pieces) TRY(sum(piece.data));
    return {};
  }
  Result<void> wait_all() override { return {}; }
  // All groups meet at once: ahead of each array goes the number of its group.
  Result<void> group_sum(std::span<const int> group, std::span<float> data, runtime::Wire wire) override {
    std::vector<std::byte> packed(runtime::bytes_of(wire, data.size()));
    runtime::pack_rounding(wire, packed.data(), data.data(), data.size());
    std::vector<float> mine{static_cast<float>(group.front())};
    mine.insert(mine.end(), data.begin(), data.end());
    world_.meet(rank_, std::as_writable_bytes(std::span(mine)), sum_groups);
    std::copy(mine.begin() + 1, mine.end(), data.begin());
    runtime::pack_rounding(wire, packed.data(), data.data(), data.size());
    return {};
  }
  void give_up() override {}
  Result<void> allreduce(std::span<double> data) override { return sum(data); }
  Result<void> broadcast(std::span<std::byte> data, int root) override {
    world_.meet(rank_, data, [root](auto& spans) {
      const auto from = spans[static_cast<std::size_t>(root)];
      for (auto& to : spans)
        if (to.data() != from.data()) std::memcpy(to.data(), from.data(), from.size());
    });
    return {};
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::memcpy(all.data() + static_cast<std::size_t>(rank_) * mine.size(), mine.data(), mine.size());
    const std::size_t part = mine.size();
    world_.meet(rank_, all, [part](auto& spans) {
      for (auto& to : spans)
        for (std::size_t r = 0; r < spans.size(); ++r)
          if (to.data() != spans[r].data())
            std::memcpy(to.data() + r * part, spans[r].data() + r * part, part);
    });
    return {};
  }
  Result<void> barrier() override {
    world_.meet(rank_, {}, [](auto&) {});
    return {};
  }
  [[noreturn]] void abort(int) override { std::abort(); }
  Result<void> finish() override { return barrier(); }

 private:
  template <class Number>
  Result<void> sum(std::span<Number> data) {
    world_.meet(rank_, std::as_writable_bytes(data), [](auto& spans) {
      const std::size_t count = spans[0].size() / sizeof(Number);
      std::vector<Number> total(count);
      for (auto& span : spans) {
        if (span.size() != spans[0].size()) std::abort();  // ranks disagree about what they sum
        const auto* values = reinterpret_cast<const Number*>(span.data());
        for (std::size_t i = 0; i < count; ++i) total[i] += values[i];
      }
      for (auto& span : spans) std::memcpy(span.data(), total.data(), span.size());
    });
    return {};
  }
  static void sum_groups(std::vector<std::span<std::byte>>& spans) {
    const auto numbers = [](std::span<std::byte> of) {
      return std::span<float>(reinterpret_cast<float*>(of.data()), of.size() / sizeof(float));
    };
    std::map<float, std::vector<float>> sums;
    for (auto& span : spans) {
      const std::span<float> term = numbers(span);
      std::vector<float>& sum = sums.try_emplace(term[0], term.size()).first->second;
      if (sum.size() != term.size()) std::abort();  // ranks disagree about what they sum
      for (std::size_t i = 1; i < sum.size(); ++i) sum[i] += term[i];
    }
    for (auto& span : spans) {
      const std::vector<float>& sum = sums[numbers(span)[0]];
      std::copy(sum.begin() + 1, sum.end(), numbers(span).begin() + 1);
    }
  }

  ThreadWorld& world_;
  int rank_;
};

// Runs `body(rank's communicator)` on each rank of a world and joins them.
template <class Body>
void on_ranks(int size, Body body) {
  ThreadWorld world(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&world, &body, rank] {
      ThreadRank comm(world, rank);
      body(comm);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace dlrun::test
