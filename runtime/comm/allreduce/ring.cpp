// The ring (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// 2009): each rank passes shards on to its right. In the first n - 1 turns it adds its own numbers to what
// comes from the left, so that each shard ends up summed on one rank; in the next n - 1 the sums go round. 2
// (n - 1) / n of the array leave each rank, the least possible: for large arrays. Shards travel in pieces,
// and a piece is passed on as soon as it was added, so that the link to the right sends while the one from
// the left receives. Order of addition: shard c starts at rank c and is added along the ring: ((x[c] +
// x[c+1]) + x[c+2]) + ..., ranks modulo n.
#include <deque>

#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/comm/allreduce/partition.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t piece_floats = 64 * 1024;
constexpr std::size_t pieces_ahead = 4;  // pieces that may arrive before one is handled

class Ring {
 public:
  Ring(Transport& link, std::span<float> data, Scratch& scratch)
      : link_(link),
        data_(data),
        arrived_(scratch.floats(pieces_ahead * piece_floats)),
        ranks_(link.size()),
        last_send_(static_cast<std::size_t>(ranks_), 0) {
    for (int turn = 0; turn < 2 * ranks_ - 2; ++turn) plan_turn(turn);
  }

  Result<void> run() {
    TRY(send_own());
    TRY(expect_more());
    for (std::size_t at = 0; at < pieces_.size(); ++at) {
      TRY(link_.wait(arriving_.front()));
      arriving_.pop_front();
      if (adds(at)) add(at);
      if (pieces_[at].turn < 2 * ranks_ - 3) TRY(send(pieces_[at]));
      ++handled_;
      TRY(expect_more());
    }
    return finish_sends(sent_);
  }

 private:
  struct Piece {
    int turn = 0;
    int shard = 0;
    std::span<float> place;
  };

  // What arrives in a turn is what the left neighbour, one place behind us, passes on.
  void plan_turn(int turn) {
    const int shard = ((link_.rank() - turn - 1) % ranks_ + 2 * ranks_) % ranks_;
    for_pieces(shard, [&](std::span<float> place) { pieces_.push_back({turn, shard, place}); });
  }

  template <class Body>
  void for_pieces(int shard, Body body) {
    std::span<float> rest = part_of(data_.size(), shard, ranks_).of(data_);
    for (; !rest.empty(); rest = rest.subspan(std::min(rest.size(), piece_floats)))
      body(rest.first(std::min(rest.size(), piece_floats)));
  }

  bool adds(std::size_t piece) const { return pieces_[piece].turn < ranks_ - 1; }
  float* slot(std::size_t piece) const { return arrived_ + piece % pieces_ahead * piece_floats; }
  void add(std::size_t at) {
    const std::span<float> place = pieces_[at].place;
    add_unpacked(CommDtype::f32, place.data(), reinterpret_cast<const std::byte*>(slot(at)), place.size());
  }

  Result<void> send_own() {
    Result<void> sent;
    for_pieces(link_.rank(), [&](std::span<float> place) {
      if (sent) sent = send({0, link_.rank(), place});
    });
    return sent;
  }

  Result<void> send(const Piece& piece) {
    leaving_.push_back(TRY(link_.send_start(std::as_bytes(piece.place), (link_.rank() + 1) % ranks_)));
    ++sent_;
    if (piece.turn < ranks_ - 1) last_send_[static_cast<std::size_t>(piece.shard)] = sent_;
    return {};
  }

  Result<void> finish_sends(std::size_t until) {
    for (; finished_ < until; ++finished_) {
      TRY(link_.wait(leaving_.front()));
      leaving_.pop_front();
    }
    return {};
  }

  // A sum is received in the place that our own part of it was sent from, so that has to be over. It is: the
  // sum could not come without it.
  Result<void> expect_more() {
    for (; expected_ < pieces_.size() && expected_ < handled_ + pieces_ahead; ++expected_) {
      const Piece& piece = pieces_[expected_];
      std::span<float> into(slot(expected_), piece.place.size());
      if (!adds(expected_)) {
        const std::size_t send = last_send_[static_cast<std::size_t>(piece.shard)];
        if (send == 0) return {};  // not sent yet: later
        TRY(finish_sends(send));
        into = piece.place;
      }
      const int left = (link_.rank() + ranks_ - 1) % ranks_;
      arriving_.push_back(TRY(link_.receive_start(std::as_writable_bytes(into), left)));
    }
    return {};
  }

  Transport& link_;
  std::span<float> data_;
  float* arrived_;
  int ranks_;
  std::vector<Piece> pieces_;           // all that will arrive, in order
  std::vector<std::size_t> last_send_;  // of a shard not summed yet: the number of its latest piece sent
  std::deque<Transport::Ticket> arriving_, leaving_;
  std::size_t handled_ = 0, expected_ = 0, sent_ = 0, finished_ = 0;
};

}  // namespace

Result<void> ring_allreduce(Transport& link, std::span<float> data, CommDtype, Scratch& scratch) {
  if (link.size() == 1) return {};
  return Ring(link, data, scratch).run();
}

}  // namespace dlrun::runtime
