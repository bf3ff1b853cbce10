// See decode_ahead.hpp.
#include "runtime/data/decode_ahead.hpp"

#include <algorithm>

namespace dlrun::runtime {

DecodeAhead::DecodeAhead(const Size& size, Decode decode) : size_(size), decode_(std::move(decode)) {
  for (unsigned i = 0; i < size_.workers; ++i)
    workers_.emplace_back([this](const std::stop_token& stopped) { work(stopped); });
}

DecodeAhead::~DecodeAhead() {
  for (std::jthread& worker : workers_) worker.request_stop();
  workers_.clear();
}

std::size_t DecodeAhead::free_rows() const {
  const std::lock_guard lock(mutex_);
  return size_.rows - std::min(size_.rows, rows_.size());
}

void DecodeAhead::announce(const RowKey& key) {
  const std::lock_guard lock(mutex_);
  rows_.push_back(
      std::make_shared<Row>(Row{.key = key, .state = State::waiting, .pixels = {}, .result = {}}));
  if (!free_.empty()) {
    rows_.back()->pixels = std::move(free_.back());
    free_.pop_back();
  }
  wanted_.notify_one();
}

std::shared_ptr<DecodeAhead::Row> DecodeAhead::next_waiting() {
  while (begun_ < rows_.size()) {
    std::shared_ptr<Row> row = rows_[begun_++];
    if (row->state == State::waiting) return row;
  }
  return nullptr;
}

void DecodeAhead::work(const std::stop_token& stopped) {
  std::vector<std::uint8_t> scratch;
  std::unique_lock lock(mutex_);
  while (wanted_.wait(lock, stopped, [this] { return begun_ < rows_.size(); })) {
    const std::shared_ptr<Row> row = next_waiting();
    if (!row) continue;
    row->state = State::decoding;
    lock.unlock();
    row->pixels.resize(size_.row_bytes);
    auto result = decode_(row->key, scratch, row->pixels);
    lock.lock();
    row->result = std::move(result);
    row->state = State::done;
    ready_.notify_all();
  }
}

// The row of the key, taken out with all before it; null where it was not announced.
std::shared_ptr<DecodeAhead::Row> DecodeAhead::drop_until(const RowKey& key) {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const auto& row) { return row->key == key; });
  if (found == rows_.end()) return nullptr;
  const auto count = static_cast<std::size_t>(found - rows_.begin()) + 1;
  std::shared_ptr<Row> out = *found;
  rows_.erase(rows_.begin(), found + 1);
  begun_ -= std::min(begun_, count);
  return out;
}

Result<void> DecodeAhead::take(const RowKey& key, std::span<std::uint8_t> out) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Row> row = drop_until(key);
  if (!row || row->state == State::waiting) {
    lock.unlock();
    return decode_(key, own_scratch_, out);
  }
  ready_.wait(lock, [&] { return row->state == State::done; });
  lock.unlock();
  TRY(std::move(row->result));
  std::copy(row->pixels.begin(), row->pixels.end(), out.begin());
  lock.lock();
  free_.push_back(std::move(row->pixels));
  return {};
}

}  // namespace dlrun::runtime
