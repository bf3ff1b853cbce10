// See node_sums.hpp.
#include "runtime/comm/allreduce/node_sums.hpp"

#include <algorithm>

#include "runtime/comm/allreduce/algorithms.hpp"

namespace dlrun::runtime {
namespace {

int place_of(std::span<const int> ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

}  // namespace

NodeSums::NodeSums(Transport& world, NodeGroups groups, CommonMemory memory, SharedMemoryAllreduce::Lost lost)
    : groups_(std::move(groups)),
      number_(place_of(groups_.inside, world.rank())),
      memory_(std::move(memory)),
      inside_(memory_.data(), number_, static_cast<int>(groups_.inside.size())),
      across_(world, groups_.across) {
  if (lost)
    inside_.set_lost([this, lost = std::move(lost)](int number) {
      return lost(groups_.inside[static_cast<std::size_t>(number)]);
    });
}

Result<void> NodeSums::allreduce(std::span<float> data, CommDtype dtype, Scratch& scratch) {
  Borders borders{0};
  for (int part = 0; part < ranks_per_node(); ++part)
    borders.push_back(part_of(data.size(), part, ranks_per_node()).end);
  inside_.reduce_scatter(data, borders, CommDtype::f32);
  TRY(inside_.state());
  const std::span<float> own = part_between(borders, number_).of(data);
  if (!own.empty()) TRY(allreduce_by_size(across_, own, dtype, scratch));
  inside_.allgather(data, borders);
  return inside_.state();
}

Borders NodeSums::whole_for(int number, std::size_t length) const {
  Borders out(static_cast<std::size_t>(ranks_per_node()) + 1, 0);
  std::fill(out.begin() + number + 1, out.end(), length);
  return out;
}

Result<void> NodeSums::serve(std::span<const ServedPiece> pieces, Scratch& scratch) {
  std::vector<ServedPiece> own;
  std::vector<Borders> borders;
  for (const ServedPiece& piece : pieces) {
    const int number = groups_.number_of[static_cast<std::size_t>(piece.server)];
    borders.push_back(whole_for(number, piece.data.size()));
    inside_.reduce_scatter(piece.data, borders.back(), CommDtype::f32);
    if (number == number_) own.push_back({piece.data, place_of(groups_.across, piece.server), piece.dtype});
  }
  TRY(inside_.state());
  if (!own.empty()) TRY(parameter_server_allreduce(across_, own, scratch));
  for (std::size_t i = 0; i < pieces.size(); ++i) inside_.allgather(pieces[i].data, borders[i]);
  return inside_.state();
}

}  // namespace dlrun::runtime
