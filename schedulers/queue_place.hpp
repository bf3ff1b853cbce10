// QueuePlace: where a waiting job stands in its queue, as far as its scheduler tells.
#pragma once

#include <optional>
#include <string>

#include "src/base/clock.hpp"

namespace dlrun {

struct QueuePlace {
  std::optional<int> position = {};   // 1: the next one; unset: not told
  std::optional<Instant> start = {};  // as the scheduler expects it now
  std::string reason = {};            // why it waits, in the scheduler's word; empty: not told
};

}  // namespace dlrun
