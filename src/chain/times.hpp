// The time of a chain: where it went, summed over its links, and how long it will still take, the queue
// between links included. Pure. A value that cannot be computed is unset: a chain whose program reports no
// steps has no end in sight.
#pragma once

#include "src/chain/chain.hpp"

namespace dlrun::job {

/// The time accounting of the links that have ended.
TimeParts times_of(const Chain& chain);
// The mean time from the end of a link to the start of the next; unset before the second link.
std::optional<Seconds> mean_queue(const Chain& chain);

struct TimeLeft {
  Seconds in_jobs{0};
  int further_links = 0;         // after the one that runs
  std::optional<Seconds> queue;  // before these; unset: unknown
  Seconds total() const { return in_jobs + queue.value_or(Seconds(0)); }
};
std::optional<TimeLeft> time_left(const Chain& chain, Instant now);

}  // namespace dlrun::job
