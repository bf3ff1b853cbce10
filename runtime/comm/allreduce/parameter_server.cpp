// Parameter servers: whoever serves a piece receives it from all others, adds in the order of the ranks, and
// sends the sum back. Every rank walks the pieces in the same order, so messages between two ranks need no
// labels though both may serve and be served. Large pieces go in parts, of which a few are under way.
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
    for (ServedPiece piece : pieces)
      for (; !piece.data.empty(); piece.data = piece.data.subspan(std::min(piece.data.size(), part_floats)))
        parts_.push_back({piece.data.first(std::min(piece.data.size(), part_floats)), piece.server});
    slots_ = scratch.floats(parts_ahead * others_ * part_floats);
    under_way_.resize(parts_.size());
  }

  Result<void> run() {
    for (std::size_t part = 0; part < std::min(parts_ahead, parts_.size()); ++part) TRY(push(part));
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      TRY(parts_[part].server == link_.rank() ? serve(part) : pull(part));
      if (part + parts_ahead < parts_.size()) TRY(push(part + parts_ahead));
    }
    return link_.wait_for(last_);
  }

 private:
  float* slot(std::size_t part, std::size_t other) const {
    return slots_ + (part % parts_ahead * others_ + other) * part_floats;
  }

  Result<void> push(std::size_t part) {
    const auto [data, server] = parts_[part];
    if (server != link_.rank()) {
      under_way_[part].push_back(TRY(link_.send_start(std::as_bytes(data), server)));
      return {};
    }
    for (int rank = 0, other = 0; rank < link_.size(); ++rank) {
      if (rank == server) continue;
      const std::span<float> into(slot(part, static_cast<std::size_t>(other++)), data.size());
      under_way_[part].push_back(TRY(link_.receive_start(std::as_writable_bytes(into), rank)));
    }
    return {};
  }

  Result<void> serve(std::size_t part) {
    TRY(link_.wait_for(under_way_[part]));
    const std::span<float> data = parts_[part].data;
    add_in_rank_order(part, data);
    for (int rank = 0; rank < link_.size(); ++rank)
      if (rank != link_.rank()) last_.push_back(TRY(link_.send_start(std::as_bytes(data), rank)));
    return {};
  }

  // The others lie in their slots in the order of ranks, and our own numbers belong at place rank().
  void add_in_rank_order(std::size_t part, std::span<float> data) {
    const auto add = [&](float* sum, const float* more) {
      add_unpacked(CommDtype::f32, sum, reinterpret_cast<const std::byte*>(more), data.size());
    };
    const auto own = static_cast<std::size_t>(link_.rank());
    for (std::size_t other = 1; other < own; ++other) add(slot(part, 0), slot(part, other));
    if (own > 0) add(data.data(), slot(part, 0));
    for (std::size_t other = own; other < others_; ++other) add(data.data(), slot(part, other));
  }

  // The sum comes to where the part was sent from, so that has to have gone.
  Result<void> pull(std::size_t part) {
    TRY(link_.wait_for(under_way_[part]));
    const auto [data, server] = parts_[part];
    last_.push_back(TRY(link_.receive_start(std::as_writable_bytes(data), server)));
    return {};
  }

  Transport& link_;
  std::size_t others_;
  std::vector<ServedPiece> parts_;
  float* slots_ = nullptr;
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
