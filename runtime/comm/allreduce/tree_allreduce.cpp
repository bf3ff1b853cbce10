// The exact sum over shards (shard_tree.hpp): a direct exchange in f32, of as many bytes as a ring where
// every rank has one term. Each rank owns a part of the array; the others send it their terms of that; it
// adds all of them in the tree's order and sends the sum to all. Done in pieces, of which three are under
// way: while one leaves, the one before is added and the one before that arrives.
#include "runtime/comm/allreduce/allreduce.hpp"
#include "runtime/comm/allreduce/partition.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kPartFloats = 64 * 1024;
constexpr std::size_t kMaxPieceFloats = 1024 * 1024;
constexpr std::size_t kUnderWay = 3;

// The memory and the messages of one piece.
class Piece {
 public:
  Piece(Transport& link, const TreePlan& plan, float* memory) : link_(link), plan_(plan), received_(memory) {}
  /// Of a piece: the terms of the others, of the own part.
  static std::size_t floats(const TreePlan& plan, std::size_t length, int ranks) {
    return plan.terms() * (length / static_cast<std::size_t>(ranks) + 2 * line_floats);
  }

  Result<void> send_terms(const TreeTerms& data) {
    data_ = data;
    const Part own = part(link_.rank());
    for (int step = 1; step < link_.size(); ++step) {
      const int rank = from(step);
      for (std::size_t term = first(rank); term < first(rank + 1); ++term)
        arriving_.push_back(TRY(link_.receive_start(bytes({slot(term), own.length()}), rank)));
    }
    for (int step = 1; step < link_.size(); ++step)
      for (const float* const term : data_.terms)
        leaving_.push_back(TRY(send(term, part(to(step)), to(step))));
    return {};
  }

  Result<void> add_and_return() {
    const Part own = part(link_.rank());
    TRY(wait(arriving_));
    std::vector<const float*> terms;
    for (std::size_t term = 0; term < plan_.terms(); ++term) terms.push_back(term_of(term, own));
    add_in_tree(plan_, terms, data_.sum.data() + own.begin, own.length());
    TRY(wait(leaving_));  // what was sent has gone: its place may take the sums
    for (int step = 1; step < link_.size(); ++step)
      leaving_.push_back(TRY(send(data_.sum.data(), own, to(step))));
    for (int step = 1; step < link_.size(); ++step)
      arriving_.push_back(TRY(link_.receive_start(bytes(part(from(step)).of(data_.sum)), from(step))));
    return {};
  }

  Result<void> collect() {
    TRY(wait(arriving_));
    return wait(leaving_);
  }

 private:
  int to(int step) const { return (link_.rank() + step) % link_.size(); }
  int from(int step) const { return (link_.rank() + link_.size() - step) % link_.size(); }
  Part part(int rank) const { return part_of(data_.sum.size(), rank, link_.size()); }
  std::size_t first(int rank) const { return plan_.first[static_cast<std::size_t>(rank)]; }
  float* slot(std::size_t term) const { return received_ + term * part(link_.rank()).length(); }
  static std::span<std::byte> bytes(std::span<float> floats) { return std::as_writable_bytes(floats); }
  const float* term_of(std::size_t term, const Part& own) const {
    const std::size_t mine = first(link_.rank());
    const bool is_own = term >= mine && term < mine + data_.terms.size();
    return is_own ? data_.terms[term - mine] + own.begin : slot(term);
  }
  Result<Transport::Ticket> send(const float* data, Part which, int rank) {
    return link_.send_start(std::as_bytes(std::span(data + which.begin, which.length())), rank);
  }
  Result<void> wait(std::vector<Transport::Ticket>& tickets) {
    TRY(link_.wait_for(tickets));
    tickets.clear();
    return {};
  }

  Transport& link_;
  const TreePlan& plan_;
  float* received_;
  TreeTerms data_;
  std::vector<Transport::Ticket> arriving_, leaving_;
};

}  // namespace

Result<void> tree_allreduce(Transport& link, const TreeTerms& data, Scratch& scratch) {
  const auto ranks = static_cast<std::size_t>(link.size());
  const std::size_t length = std::min(kPartFloats * ranks, kMaxPieceFloats);
  const std::size_t count = (data.sum.size() + length - 1) / length;
  const std::size_t floats = Piece::floats(*data.plan, std::min(length, data.sum.size()), link.size());
  float* const memory = scratch.floats(kUnderWay * floats);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < kUnderWay; ++i) pieces.emplace_back(link, *data.plan, memory + i * floats);
  for (std::size_t turn = 0; turn < count + 2; ++turn) {
    if (turn < count) TRY(pieces[turn % kUnderWay].send_terms(piece_of(data, turn * length, length)));
    if (turn >= 1 && turn - 1 < count) TRY(pieces[(turn - 1) % kUnderWay].add_and_return());
    if (turn >= 2) TRY(pieces[(turn - 2) % kUnderWay].collect());
  }
  return {};
}

}  // namespace dlrun::runtime
