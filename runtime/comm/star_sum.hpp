// The sums of several groups of ranks at once where every rank has a link with rank 0 only: rank 0 adds for
// all of them, in the order of the ranks, in f32. Not fast: every byte passes rank 0.
#pragma once

#include <span>

#include "runtime/comm/peer_links.hpp"
#include "runtime/comm/wire.hpp"

namespace dlrun::runtime {

struct StarPlace {
  int rank, ranks;
  int group;  // the first rank of this rank's group names it
};

// All ranks call it; in place. On a short wire terms of other ranks than 0 are rounded, and the sum once
// more. An Error where a peer is gone, or where arrays of one group differ in length.
Result<void> star_group_sum(PeerLinks& links, const StarPlace& place, std::span<float> data, Wire wire);

}  // namespace dlrun::runtime
