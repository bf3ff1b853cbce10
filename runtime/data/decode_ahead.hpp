// DecodeAhead: worker threads that decode samples before a step asks for them, in the order in which they are
// announced, into a bounded number of rows. What a row holds is a pure function of its key, so that neither
// the number of workers nor what was announced changes a bit: who takes a row that nobody has begun decodes
// it itself.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/data/augmentation.hpp"

namespace dlrun::runtime {

/// Which row: of a sample as it is, or augmented.
struct RowKey {
  std::uint64_t sample = 0;
  std::optional<AugmentationKey> of;
  friend bool operator==(const RowKey& a, const RowKey& b) {
    if (a.sample != b.sample || a.of.has_value() != b.of.has_value()) return false;
    return !a.of || (a.of->seed == b.of->seed && a.of->epoch == b.of->epoch);
  }
};

class DecodeAhead {
 public:
  /// `scratch` is a worker's own memory.
  using Decode = std::function<Result<void>(const RowKey& key, std::vector<std::uint8_t>& scratch,
                                            std::span<std::uint8_t> row)>;
  /// A row that is to be decoded with others.
  struct Job {
    RowKey key;
    std::span<std::uint8_t> row;
    Result<void> result;
  };
  using DecodeMany = std::function<void(std::span<Job> jobs)>;
  struct Size {
    std::size_t rows = 0, row_bytes = 0;
    unsigned workers = 1;
    std::size_t together = 1;  // rows that a worker takes at once
  };
  DecodeAhead(const Size& size, Decode decode);
  DecodeAhead(const Size& size, DecodeMany decode);
  ~DecodeAhead();
  DecodeAhead(const DecodeAhead&) = delete;
  DecodeAhead& operator=(const DecodeAhead&) = delete;

  /// How many more rows may be announced.
  std::size_t free_rows() const;
  /// The workers are to decode it, behind those announced before.
  void announce(const RowKey& key);
  /// The row of the key into `out`, in the order of announcements: those before it are forgotten.
  Result<void> take(const RowKey& key, std::span<std::uint8_t> out);

 private:
  enum class State { waiting, decoding, done };
  struct Row {
    RowKey key;
    State state = State::waiting;
    std::vector<std::uint8_t> pixels;
    Result<void> result;
  };
  DecodeAhead(const Size& size, Decode one, DecodeMany many);
  void work(const std::stop_token& stopped);
  std::shared_ptr<Row> next_waiting();
  std::vector<std::shared_ptr<Row>> next_rows();
  void decode(std::span<const std::shared_ptr<Row>> rows, std::vector<std::uint8_t>& scratch);
  Result<void> decode_here(const RowKey& key, std::span<std::uint8_t> out);
  std::shared_ptr<Row> drop_until(const RowKey& key);

  Size size_;
  Decode decode_;           // or
  DecodeMany decode_many_;  // this
  mutable std::mutex mutex_;
  std::condition_variable_any wanted_;
  std::condition_variable ready_;
  std::deque<std::shared_ptr<Row>> rows_;
  std::size_t begun_ = 0;  // of rows_, from the front on
  std::vector<std::vector<std::uint8_t>> free_;
  std::vector<std::uint8_t> own_scratch_;
  std::vector<std::jthread> workers_;
};

}  // namespace dlrun::runtime
