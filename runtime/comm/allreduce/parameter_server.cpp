// Parameter servers: whoever serves a piece receives it from all others, adds in the order of the ranks, and
// sends the sum back. Every rank walks the pieces in the same order, so messages between two ranks need no
// labels though both may serve and be served. Large pieces go in parts, of which a few are under way. In a
// 16-bit dtype the terms of the others and the sum are rounded once each, and terms are added in f32.
#include <deque>

#include "runtime/comm/allreduce/allreduce.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t part_floats = 64 * 1024;
constexpr std::size_t parts_ahead = 4;  // parts that are under way to their servers

class ServedSum {
 public:
  ServedSum(Transport& link, std::span<const ServedPiece> pieces, Scratch& scratch)
      : link_(link), others_(static_cast<std::size_t>(link.size()) - 1) {
    std::size_t packed = 0;
    for (ServedPiece piece : pieces)
      for (; !piece.data.empty(); piece.data = piece.data.subspan(std::min(piece.data.size(), part_floats))) {
        const std::span<float> data = piece.data.first(std::min(piece.data.size(), part_floats));
        parts_.push_back({data, piece.server, piece.dtype});
        packed_at_.push_back(packed);
        if (piece.dtype != CommDtype::f32) packed += bytes_of(piece.dtype, data.size());
      }
    const std::size_t slots = (parts_ahead * others_ + 1) * part_floats;
    slots_ = scratch.floats(slots + (packed + sizeof(float) - 1) / sizeof(float));
    packed_ = reinterpret_cast<std::byte*>(slots_ + slots);
    under_way_.resize(parts_.size());
  }

  Result<void> run() {
    for (std::size_t part = 0; part < std::min(parts_ahead, parts_.size()); ++part) TRY(push(part));
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      TRY(parts_[part].server == link_.rank() ? serve(part) : pull(part));
      if (part + parts_ahead < parts_.size()) TRY(push(part + parts_ahead));
    }
    TRY(link_.wait_for(last_));
    for (std::size_t part = 0; part < parts_.size(); ++part)
      if (const ServedPiece& of = parts_[part]; is_packed(part) && of.server != link_.rank())
        unpack(of.dtype, of.data.data(), packed_ + packed_at_[part], of.data.size());
    return {};
  }

 private:
  bool is_packed(std::size_t part) const { return parts_[part].dtype != CommDtype::f32; }
  std::byte* slot(std::size_t part, std::size_t other) const {
    return reinterpret_cast<std::byte*>(slots_ + (part % parts_ahead * others_ + other) * part_floats);
  }
  // Behind the slots: room for a sum of terms that came packed.
  float* first_sum() const { return slots_ + parts_ahead * others_ * part_floats; }
  // The part as it travels: where it lies, or packed.
  std::span<std::byte> message(std::size_t part) const {
    const ServedPiece& of = parts_[part];
    if (!is_packed(part)) return std::as_writable_bytes(of.data);
    return {packed_ + packed_at_[part], bytes_of(of.dtype, of.data.size())};
  }

  Result<void> push(std::size_t part) {
    const ServedPiece& of = parts_[part];
    if (of.server != link_.rank()) {
      if (is_packed(part)) pack(of.dtype, message(part).data(), of.data.data(), of.data.size());
      under_way_[part].push_back(TRY(link_.send_start(message(part), of.server)));
      return {};
    }
    for (int rank = 0, other = 0; rank < link_.size(); ++rank) {
      if (rank == of.server) continue;
      const std::span<std::byte> into(slot(part, static_cast<std::size_t>(other++)), message(part).size());
      under_way_[part].push_back(TRY(link_.receive_start(into, rank)));
    }
    return {};
  }

  Result<void> serve(std::size_t part) {
    TRY(link_.wait_for(under_way_[part]));
    const ServedPiece& of = parts_[part];
    add_in_rank_order(part, of.data);
    if (is_packed(part)) pack_rounding(of.dtype, message(part).data(), of.data.data(), of.data.size());
    for (int rank = 0; rank < link_.size(); ++rank)
      if (rank != link_.rank()) last_.push_back(TRY(link_.send_start(message(part), rank)));
    return {};
  }

  // The others lie in their slots in the order of ranks, and our own numbers belong at place rank().
  void add_in_rank_order(std::size_t part, std::span<float> data) {
    const CommDtype dtype = parts_[part].dtype;
    const auto add = [&](float* sum, std::size_t other) {
      add_unpacked(dtype, sum, slot(part, other), data.size());
    };
    const auto own = static_cast<std::size_t>(link_.rank());
    if (own > 0) {
      unpack(dtype, first_sum(), slot(part, 0), data.size());
      for (std::size_t other = 1; other < own; ++other) add(first_sum(), other);
      add_unpacked(CommDtype::f32, data.data(), reinterpret_cast<const std::byte*>(first_sum()), data.size());
    }
    for (std::size_t other = own; other < others_; ++other) add(data.data(), other);
  }

  // The sum comes to where the part was sent from, so that has to have gone.
  Result<void> pull(std::size_t part) {
    TRY(link_.wait_for(under_way_[part]));
    last_.push_back(TRY(link_.receive_start(message(part), parts_[part].server)));
    return {};
  }

  Transport& link_;
  std::size_t others_;
  std::vector<ServedPiece> parts_;
  float* slots_ = nullptr;
  std::byte* packed_ = nullptr;
  std::vector<std::size_t> packed_at_;                     // of a part that is packed: its first byte there
  std::vector<std::vector<Transport::Ticket>> under_way_;  // of a part, to its server
  std::vector<Transport::Ticket> last_;                    // sums on their way back
};

}  // namespace

Result<void> parameter_server_allreduce(Transport& link, std::span<const ServedPiece> pieces,
                                        Scratch& scratch) {
  if (link.size() == 1) return {};
  return ServedSum(link, pieces, scratch).run();
}

}  // namespace dlrun::runtime
