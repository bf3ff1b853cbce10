// The time of a chain: where it went, summed over its links, and how long it will still take, the queue
// between links included. Pure. What cannot be told is nothing: a chain whose program reports no steps has no
// end in sight.
#pragma once

#include "src/chain/chain.hpp"

namespace dlrun::job {

// Of the links that have ended.
TimeParts times_of(const Chain& chain);
// From one link's end to the next one's beginning, on average; nothing before there were two.
std::optional<Seconds> mean_queue(const Chain& chain);

struct TimeLeft {
  Seconds in_jobs{0};
  int further_links = 0;         // behind the one that runs
  std::optional<Seconds> queue;  // in front of these; nothing: not known
  Seconds total() const { return in_jobs + queue.value_or(Seconds(0)); }
};
std::optional<TimeLeft> time_left(const Chain& chain, Instant now);

}  // namespace dlrun::job
