// See decode_ahead.hpp.
#include "runtime/data/decode_ahead.hpp"

#include <algorithm>

namespace dlrun::runtime {

DecodeAhead::DecodeAhead(const Size& size, Decode decode) : DecodeAhead(size, std::move(decode), {}) {}
DecodeAhead::DecodeAhead(const Size& size, DecodeMany decode) : DecodeAhead(size, {}, std::move(decode)) {}

DecodeAhead::DecodeAhead(const Size& size, Decode one, DecodeMany many)
    : size_(size), decode_(std::move(one)), decode_many_(std::move(many)) {
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

std::vector<std::shared_ptr<DecodeAhead::Row>> DecodeAhead::next_rows() {
  std::vector<std::shared_ptr<Row>> out;
  while (out.size() < size_.together) {
    std::shared_ptr<Row> row = next_waiting();
    if (!row) break;
    row->state = State::decoding;
    out.push_back(std::move(row));
  }
  return out;
}

void DecodeAhead::decode(std::span<const std::shared_ptr<Row>> rows, std::vector<std::uint8_t>& scratch) {
  for (const auto& row : rows) row->pixels.resize(size_.row_bytes);
  if (!decode_many_) {
    for (const auto& row : rows) row->result = decode_(row->key, scratch, row->pixels);
    return;
  }
  std::vector<Job> jobs;
  for (const auto& row : rows) jobs.push_back({row->key, row->pixels, {}});
  decode_many_(jobs);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i]->result = std::move(jobs[i].result);
}

void DecodeAhead::work(const std::stop_token& stopped) {
  std::vector<std::uint8_t> scratch;
  std::unique_lock lock(mutex_);
  while (wanted_.wait(lock, stopped, [this] { return begun_ < rows_.size(); })) {
    const std::vector<std::shared_ptr<Row>> rows = next_rows();
    if (rows.empty()) continue;
    lock.unlock();
    decode(rows, scratch);
    lock.lock();
    for (const auto& row : rows) row->state = State::done;
    ready_.notify_all();
  }
}

Result<void> DecodeAhead::decode_here(const RowKey& key, std::span<std::uint8_t> out) {
  if (!decode_many_) return decode_(key, own_scratch_, out);
  Job job{key, out, {}};
  decode_many_({&job, 1});
  return std::move(job.result);
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
    return decode_here(key, out);
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
