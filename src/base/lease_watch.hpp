// LeaseWatch: the state of the newest lease's owner, by repeated observation. An owner on this host is judged
// by its process, an owner elsewhere by changes of the file, measured with this process's clock. A live owner
// is never judged to have ended before the time of silence is over.
#pragma once

#include <optional>

#include "src/base/clock.hpp"
#include "src/base/lease_folder.hpp"

namespace dlrun {

struct LeaseTimes {
  Seconds renewal{5};   // how often the owner renews it
  Seconds silence{40};  // an owner elsewhere that has not renewed it for so long has ended
  Seconds wait{20};     // how long to wait for a live owner, which may be about to end
};

enum class LeaseState {
  free,
  in_use,
  unclear
};  // unclear: elsewhere, and neither silent for long nor seen to renew

class LeaseWatch {
 public:
  explicit LeaseWatch(LeaseTimes times) : times_(times) {}
  LeaseState observe(const LeaseFile& newest, Life life, Ticks now);
  // The time since a renewal was last seen; unset if none was.
  std::optional<Seconds> since_renewal(Ticks now) const;

 private:
  LeaseTimes times_;
  int number_ = 0;
  std::string content_;
  Ticks changed_{};
  bool renewed_ = false;
};

}  // namespace dlrun
