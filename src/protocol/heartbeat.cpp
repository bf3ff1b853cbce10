#include "src/protocol/heartbeat.hpp"

namespace dlrun {

std::vector<int> Heartbeat::silent(Ticks now) {
  const bool slept = last_beat_ != Ticks{} && now - last_beat_ > lost_after_ / 2;
  last_beat_ = now;
  std::vector<int> out;
  for (auto& [member, when] : heard_) {
    if (slept) when = now;
    if (now - when > lost_after_) out.push_back(member);
  }
  return out;
}

}  // namespace dlrun
