// The direct exchange (reduce-scatter, then allgather): each rank owns a shard; the others send it their part
// of that, packed; it adds them to its own in f32 and sends the sum, packed, to all. Two roundings in a
// 16-bit dtype however many ranks there are, where ring and halving would round at every hop. Done in pieces,
// of which three are under way: while one leaves, the one before is added and the one before that unpacked.
// Order of addition: on the owner r of a shard, x[r] + x[r-1] + x[r-2] + ..., ranks modulo n; x[r] is not
// rounded.
#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/comm/allreduce/partition.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kShardFloats = 64 * 1024;
constexpr std::size_t kMaxPieceFloats = 1024 * 1024;
constexpr std::size_t under_way = 3;

std::size_t exchanged_floats(int ranks) {
  return std::min(kShardFloats * static_cast<std::size_t>(ranks), kMaxPieceFloats);
}

// The memory and the messages of one piece.
class Piece {
 public:
  Piece(Transport& link, CommDtype dtype, std::byte* memory, std::size_t floats)
      : link_(link), dtype_(dtype), parts_(memory), mine_(memory + bytes_of(dtype, floats)) {}
  // The second half holds a shard of each rank, whose ends are whole cache lines.
  static std::size_t bytes(CommDtype dtype, std::size_t floats, int ranks) {
    return bytes_of(dtype, 2 * floats + static_cast<std::size_t>(ranks) * line_floats);
  }

  Result<void> send_parts(std::span<float> data) {
    data_ = data;
    const Part own = shard(link_.rank());
    for (int step = 1; step < link_.size(); ++step)
      arriving_.push_back(TRY(receive(mine_, step, own, from(step))));
    for (int step = 1; step < link_.size(); ++step) {
      const Part theirs = shard(to(step));
      pack(dtype_, parts_ + at(theirs), data.data() + theirs.begin, theirs.length());
      leaving_.push_back(TRY(send(parts_, theirs, to(step))));
    }
    return {};
  }

  // The parts of my shard wait one behind the other.
  Result<void> add_and_return() {
    const Part own = shard(link_.rank());
    float* sum = data_.data() + own.begin;
    for (int step = 1; step < link_.size(); ++step) {
      TRY(link_.wait(arriving_[static_cast<std::size_t>(step) - 1]));
      add_unpacked(dtype_, sum, mine_ + slot(step, own), own.length());
    }
    arriving_.clear();
    pack_rounding(dtype_, parts_ + at(own), sum, own.length());
    TRY(link_.wait_for(leaving_));  // what was sent has gone: its place takes the sums
    leaving_.clear();
    for (int step = 1; step < link_.size(); ++step) leaving_.push_back(TRY(send(parts_, own, to(step))));
    for (int step = 1; step < link_.size(); ++step) {
      const Part theirs = shard(from(step));
      arriving_.push_back(
          TRY(link_.receive_start({parts_ + at(theirs), bytes_of(dtype_, theirs.length())}, from(step))));
    }
    return {};
  }

  Result<void> collect() {
    for (int step = 1; step < link_.size(); ++step) {
      const Part theirs = shard(from(step));
      TRY(link_.wait(arriving_[static_cast<std::size_t>(step) - 1]));
      unpack(dtype_, data_.data() + theirs.begin, parts_ + at(theirs), theirs.length());
    }
    arriving_.clear();
    TRY(link_.wait_for(leaving_));
    leaving_.clear();
    return {};
  }

 private:
  int to(int step) const { return (link_.rank() + step) % link_.size(); }
  int from(int step) const { return (link_.rank() + link_.size() - step) % link_.size(); }
  Part shard(int rank) const { return part_of(data_.size(), rank, link_.size()); }
  std::size_t at(Part which) const { return bytes_of(dtype_, which.begin); }
  std::size_t slot(int step, Part own) const {
    return bytes_of(dtype_, static_cast<std::size_t>(step - 1) * own.length());
  }
  Result<Transport::Ticket> send(const std::byte* base, Part which, int rank) {
    return link_.send_start({base + at(which), bytes_of(dtype_, which.length())}, rank);
  }
  Result<Transport::Ticket> receive(std::byte* base, int step, Part own, int rank) {
    return link_.receive_start({base + slot(step, own), bytes_of(dtype_, own.length())}, rank);
  }

  Transport& link_;
  CommDtype dtype_;
  std::byte* parts_;  // as the array lies, packed
  std::byte* mine_;   // my shard, of every other rank
  std::span<float> data_;
  std::vector<Transport::Ticket> arriving_, leaving_;
};

}  // namespace

Result<void> direct_allreduce(Transport& link, std::span<float> data, CommDtype dtype, Scratch& scratch) {
  if (link.size() == 1) return {};
  const std::size_t length = exchanged_floats(link.size());
  const std::size_t count = (data.size() + length - 1) / length;
  const std::size_t bytes = Piece::bytes(dtype, length, link.size());
  std::byte* memory = scratch.bytes(under_way * bytes);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < under_way; ++i) pieces.emplace_back(link, dtype, memory + i * bytes, length);
  for (std::size_t turn = 0; turn < count + 2; ++turn) {
    if (turn < count) {
      const std::span<float> rest = data.subspan(turn * length);
      TRY(pieces[turn % under_way].send_parts(rest.first(std::min(length, rest.size()))));
    }
    if (turn >= 1 && turn - 1 < count) TRY(pieces[(turn - 1) % under_way].add_and_return());
    if (turn >= 2) TRY(pieces[(turn - 2) % under_way].collect());
  }
  return {};
}

}  // namespace dlrun::runtime
