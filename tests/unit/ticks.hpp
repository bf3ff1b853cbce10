// Moments for tests of what takes the time as an argument: so many seconds after a beginning that is not the
// clock's own.
#pragma once

#include "src/base/clock.hpp"

namespace dlrun::test {

inline Ticks at(double seconds) {
  return Ticks{} + std::chrono::duration_cast<Ticks::duration>(Seconds(1000 + seconds));
}

}  // namespace dlrun::test
