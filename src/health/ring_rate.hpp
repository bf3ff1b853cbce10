// ring_rate(): allreduces over a ring of nodes, one after the other for a moment, as a training does one
// per step: each node waits for the one before it in every step, so the slowest link decides for all. What is
// told is how many bytes came through one link. Chunks have the same size whatever the number of nodes, so
// that rings of different sizes compare. It blocks; callers have a thread for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/clock.hpp"

namespace dlrun::health {

struct RingPlace {
  int place = 0, size = 2;
  std::size_t chunk = 64 << 10;  // bytes of a step; whole floats
  Seconds time{0.5};  // the first node ends it after so long; each one by itself after four times that
  Seconds begins{4};  // all others have to be there by then
};

struct RingRate {
  std::string problem;     // empty: it ran
  std::int64_t bytes = 0;  // from the node before
  Seconds took{0};
};

/// `from_previous` and `to_next` are connected sockets, or pipes that are not blocking.
RingRate ring_rate(int from_previous, int to_next, const RingPlace& ring);

}  // namespace dlrun::health
