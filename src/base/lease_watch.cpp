#include "src/base/lease_watch.hpp"

namespace dlrun {

LeaseState LeaseWatch::observe(const LeaseFile& newest, Life life, Ticks now) {
  const bool same = newest.number == number_;
  if (!same || newest.content != content_) {
    renewed_ = same && !content_.empty();
    number_ = newest.number, content_ = newest.content, changed_ = now;
  }
  if (newest.number == 0 || newest.released || life == Life::ended) return LeaseState::free;
  if (life == Life::alive) return LeaseState::in_use;
  if (now - changed_ >= times_.silence) return LeaseState::free;
  return renewed_ ? LeaseState::in_use : LeaseState::unclear;
}

std::optional<Seconds> LeaseWatch::since_renewal(Ticks now) const {
  if (!renewed_) return std::nullopt;
  return Seconds(now - changed_);
}

}  // namespace dlrun
