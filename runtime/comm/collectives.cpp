// See collectives.hpp.
#include "runtime/comm/collectives.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace dlrun::runtime {
namespace {

constexpr std::size_t kPieceFloats = 256 * 1024;  // of a block of reduce-scatter: bounds the memory

// One reduce-scatter: pieces of all blocks, one after the other.
class ReduceScatter {
 public:
  ReduceScatter(Transport& link, std::span<const float> data, Borders borders, std::span<float> mine,
                CommDtype dtype, Scratch& scratch)
      : link_(link),
        data_(data),
        borders_(std::move(borders)),
        mine_(mine),
        dtype_(dtype),
        longest_(longest_part(borders_)),
        piece_(std::min(kPieceFloats, longest_)) {
    const auto others = static_cast<std::size_t>(link.size()) - 1;
    slot_ = (bytes_of(dtype, piece_) + 63) / 64 * 64;
    arriving_ = scratch.bytes(2 * others * slot_ + piece_ * sizeof(float));
    leaving_ = arriving_ + others * slot_;
    lower_ = reinterpret_cast<float*>(leaving_ + others * slot_);
  }

  Result<void> run() {
    for (std::size_t at = 0; at < longest_; at += piece_) {
      const std::size_t count = piece(link_.rank(), at).length();
      TRY(exchange(at, count));
      if (count > 0) add(at, count);
      TRY(link_.wait_for(sent_));
    }
    return {};
  }

 private:
  // The slot of another rank: those below this rank come first, in their order.
  std::size_t slot(int rank) const {
    return static_cast<std::size_t>(rank < link_.rank() ? rank : rank - 1) * slot_;
  }

  // Of a rank's part.
  Part piece(int rank, std::size_t at) const {
    return piece_of_part(part_between(borders_, rank), at, piece_);
  }

  // Each rank starts with its right neighbour, so that no rank is everybody's first.
  Result<void> exchange(std::size_t at, std::size_t count) {
    const std::size_t bytes = bytes_of(dtype_, count);
    std::vector<Transport::Ticket> received;
    sent_.clear();
    for (int step = 1; step < link_.size() && count > 0; ++step) {
      const int from = (link_.rank() + link_.size() - step) % link_.size();
      received.push_back(TRY(link_.receive_start({arriving_ + slot(from), bytes}, from)));
    }
    for (int step = 1; step < link_.size(); ++step) {
      const int to = (link_.rank() + step) % link_.size();
      const Part theirs = piece(to, at);
      if (theirs.length() == 0) continue;
      pack(dtype_, leaving_ + slot(to), data_.data() + theirs.begin, theirs.length());
      sent_.push_back(TRY(link_.send_start({leaving_ + slot(to), bytes_of(dtype_, theirs.length())}, to)));
    }
    return link_.wait_for(received);
  }

  // ((x0 + x1) + ...) + own + ...: the terms below this rank are added up first, beside its own.
  void add(std::size_t at, std::size_t count) {
    const int rank = link_.rank();
    float* const sum = mine_.data() + at;
    std::memmove(sum, data_.data() + piece(rank, at).begin, count * sizeof(float));
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
  Borders borders_;
  std::span<float> mine_;
  CommDtype dtype_;
  std::size_t longest_, piece_, slot_ = 0;
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
  Borders borders;
  for (std::size_t rank = 0; rank <= static_cast<std::size_t>(link.size()); ++rank)
    borders.push_back(rank * mine.size());
  return ReduceScatter(link, data, std::move(borders), mine, dtype, scratch).run();
}

Result<void> direct_reduce_scatter(Transport& link, std::span<float> data, const Borders& borders,
                                   CommDtype dtype, Scratch& scratch) {
  const std::span<float> mine = part_between(borders, link.rank()).of(data);
  return ReduceScatter(link, data, borders, mine, dtype, scratch).run();
}

Result<void> direct_allgather(Transport& link, std::span<float> data, const Borders& borders) {
  const auto part = [&](int rank) { return std::as_writable_bytes(part_between(borders, rank).of(data)); };
  std::vector<Transport::Ticket> under_way;
  for (int step = 1; step < link.size(); ++step) {
    const int from = (link.rank() + link.size() - step) % link.size();
    if (!part(from).empty()) under_way.push_back(TRY(link.receive_start(part(from), from)));
  }
  for (int step = 1; step < link.size() && !part(link.rank()).empty(); ++step)
    under_way.push_back(TRY(link.send_start(part(link.rank()), (link.rank() + step) % link.size())));
  return link.wait_for(under_way);
}

Result<void> check_borders(std::span<const std::size_t> borders, std::size_t data, int ranks) {
  if (borders.size() == static_cast<std::size_t>(ranks) + 1 && borders.front() == 0 &&
      borders.back() == data && std::is_sorted(borders.begin(), borders.end()))
    return {};
  return fail(ErrorKind::internal, "{} borders of {} numbers on {} ranks", borders.size(), data, ranks);
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
