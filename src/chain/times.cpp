#include "src/chain/times.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/utc.hpp"

namespace dlrun::job {
namespace {

bool has_ended(const Link& link) {
  return link.end != LinkEnd::running;
}

// The mean length of links that ran to their walltime; unset if none did.
std::optional<Seconds> length_of_links(const Chain& chain) {
  Seconds sum{0};
  int count = 0;
  for (const Link& link : chain.links)
    if (link.end == LinkEnd::again) sum += Seconds(link.seconds), ++count;
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

Seconds elapsed(const Chain& chain, Instant now) {
  if (chain.links.empty() || has_ended(chain.links.back())) return Seconds(0);
  const auto began = parse_utc(chain.links.back().began);
  return began ? std::max(Seconds(now - *began), Seconds(0)) : Seconds(0);
}

}  // namespace

TimeParts times_of(const Chain& chain) {
  std::vector<TimeParts> parts;
  Seconds total{0};
  for (const Link& link : chain.links) {
    if (!has_ended(link)) continue;
    parts.push_back(link.time);
    total += Seconds(link.seconds);
  }
  return sum_of(parts, total);
}

std::optional<Seconds> mean_queue(const Chain& chain) {
  Seconds sum{0};
  int count = 0;
  for (std::size_t i = 1; i < chain.links.size(); ++i) {
    const auto ended = parse_utc(chain.links[i - 1].ended), began = parse_utc(chain.links[i].began);
    if (!ended || !began) continue;
    sum += std::max(Seconds(*began - *ended), Seconds(0));
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

std::optional<TimeLeft> time_left(const Chain& chain, Instant now) {
  const auto progress = progress_of(chain);
  if (!progress || progress->step <= 0 || progress->steps < progress->step || is_over(chain.state))
    return std::nullopt;
  const double share =
      static_cast<double>(progress->steps - progress->step) / static_cast<double>(progress->step);
  const Seconds whole = times_of(chain).total * share, so_far = elapsed(chain, now);
  TimeLeft out;
  out.in_jobs = std::max(whole - so_far, Seconds(0));
  const auto length = length_of_links(chain);
  if (!length || length->count() <= 0) return out;
  const bool runs = chain.state == ChainState::running;
  const Seconds of_this = runs ? std::max(*length - so_far, Seconds(0)) : Seconds(0);
  out.further_links = static_cast<int>(std::ceil(std::max((out.in_jobs - of_this) / *length, 0.0)));
  if (const auto queue = mean_queue(chain)) out.queue = *queue * out.further_links;
  return out;
}

}  // namespace dlrun::job
