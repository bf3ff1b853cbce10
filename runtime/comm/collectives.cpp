// See collectives.hpp.
#include "runtime/comm/collectives.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace dlrun::runtime {
namespace {

constexpr std::size_t kPieceFloats = 256 * 1024;  // of a block of reduce-scatter: bounds the memory

// One reduce-scatter: pieces of all blocks, one after the other.
class ReduceScatter {
 public:
  ReduceScatter(Transport& link, std::span<const float> data, std::span<float> mine, CommDtype dtype,
                Scratch& scratch)
      : link_(link), data_(data), mine_(mine), dtype_(dtype), piece_(std::min(kPieceFloats, mine.size())) {
    const auto others = static_cast<std::size_t>(link.size()) - 1;
    slot_ = (bytes_of(dtype, piece_) + 63) / 64 * 64;
    arriving_ = scratch.bytes(2 * others * slot_ + piece_ * sizeof(float));
    leaving_ = arriving_ + others * slot_;
    lower_ = reinterpret_cast<float*>(leaving_ + others * slot_);
  }

  Result<void> run() {
    for (std::size_t at = 0; at < mine_.size(); at += piece_) {
      const std::size_t count = std::min(piece_, mine_.size() - at);
      TRY(exchange(at, count));
      add(at, count);
      TRY(link_.wait_for(sent_));
    }
    return {};
  }

 private:
  // The slot of another rank: those below this rank come first, in their order.
  std::size_t slot(int rank) const {
    return static_cast<std::size_t>(rank < link_.rank() ? rank : rank - 1) * slot_;
  }

  // Each rank starts with its right neighbour, so that no rank is everybody's first.
  Result<void> exchange(std::size_t at, std::size_t count) {
    const std::size_t bytes = bytes_of(dtype_, count);
    std::vector<Transport::Ticket> received;
    sent_.clear();
    for (int step = 1; step < link_.size(); ++step) {
      const int from = (link_.rank() + link_.size() - step) % link_.size();
      received.push_back(TRY(link_.receive_start({arriving_ + slot(from), bytes}, from)));
    }
    for (int step = 1; step < link_.size(); ++step) {
      const int to = (link_.rank() + step) % link_.size();
      pack(dtype_, leaving_ + slot(to), data_.data() + static_cast<std::size_t>(to) * mine_.size() + at,
           count);
      sent_.push_back(TRY(link_.send_start({leaving_ + slot(to), bytes}, to)));
    }
    return link_.wait_for(received);
  }

  // ((x0 + x1) + ...) + own + ...: the terms below this rank are added up first, beside its own.
  void add(std::size_t at, std::size_t count) {
    const int rank = link_.rank();
    float* const sum = mine_.data() + at;
    std::memmove(sum, data_.data() + static_cast<std::size_t>(rank) * mine_.size() + at,
                 count * sizeof(float));
    if (rank > 0) {
      unpack(dtype_, lower_, arriving_, count);
      for (int other = 1; other < rank; ++other) add_unpacked(dtype_, lower_, arriving_ + slot(other), count);
      add_unpacked(CommDtype::f32, sum, reinterpret_cast<const std::byte*>(lower_), count);
    }
    for (int other = rank + 1; other < link_.size(); ++other)
      add_unpacked(dtype_, sum, arriving_ + slot(other), count);
  }

  Transport& link_;
  std::span<const float> data_;
  std::span<float> mine_;
  CommDtype dtype_;
  std::size_t piece_, slot_ = 0;
  std::byte *arriving_ = nullptr, *leaving_ = nullptr;
  float* lower_ = nullptr;
  std::vector<Transport::Ticket> sent_;
};

}  // namespace

Result<void> dissemination_barrier(Transport& link) {
  for (int distance = 1; distance < link.size(); distance *= 2) {
    const int ahead = (link.rank() + distance) % link.size();
    const int behind = (link.rank() + link.size() - distance) % link.size();
    const Transport::Ticket heard = TRY(link.receive_start({}, behind));
    TRY(link.wait(TRY(link.send_start({}, ahead))));
    TRY(link.wait(heard));
  }
  return {};
}

// Ranks count from the root. A rank receives from the one whose number lacks its lowest bit, and sends to
// those that have one bit more below that.
Result<void> tree_broadcast(Transport& link, std::span<std::byte> data, int root) {
  const int ranks = link.size(), own = (link.rank() - root + ranks) % ranks;
  const auto rank_of = [&](int number) { return (number + root) % ranks; };
  int bit = 1;
  while (bit < ranks && (own & bit) == 0) bit *= 2;
  if (own != 0) TRY(link.wait(TRY(link.receive_start(data, rank_of(own - bit)))));
  std::vector<Transport::Ticket> leaving;
  for (bit /= 2; bit > 0; bit /= 2)
    if (own + bit < ranks) leaving.push_back(TRY(link.send_start(data, rank_of(own + bit))));
  return link.wait_for(leaving);
}

Result<void> direct_allgather(Transport& link, std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::size_t each = mine.size();
  const auto part = [&](int rank) { return all.subspan(static_cast<std::size_t>(rank) * each, each); };
  std::vector<Transport::Ticket> under_way;
  for (int step = 1; step < link.size(); ++step) {
    const int from = (link.rank() + link.size() - step) % link.size();
    under_way.push_back(TRY(link.receive_start(part(from), from)));
  }
  for (int step = 1; step < link.size(); ++step)
    under_way.push_back(TRY(link.send_start(mine, (link.rank() + step) % link.size())));
  if (each > 0) std::memmove(part(link.rank()).data(), mine.data(), each);
  return link.wait_for(under_way);
}

Result<void> direct_reduce_scatter(Transport& link, std::span<const float> data, std::span<float> mine,
                                   CommDtype dtype, Scratch& scratch) {
  return ReduceScatter(link, data, mine, dtype, scratch).run();
}

Result<void> check_allgather(std::size_t mine, std::size_t all, int ranks) {
  if (all == mine * static_cast<std::size_t>(ranks)) return {};
  return fail(ErrorKind::internal, "allgather of {} bytes from {} ranks into {} bytes", mine, ranks, all);
}

Result<void> check_reduce_scatter(std::size_t data, std::size_t mine, int ranks) {
  if (data == mine * static_cast<std::size_t>(ranks)) return {};
  return fail(ErrorKind::internal, "reduce-scatter of {} numbers on {} ranks into {} numbers each", data,
              ranks, mine);
}

}  // namespace dlrun::runtime
