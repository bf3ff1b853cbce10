// LeaseWatch: what is known of the newest lease's owner after looking at it again and again. On this host its
// process tells; elsewhere only that the file changes, by this process's own clock. A live owner is never
// said to have ended for anything less than silence.
#pragma once

#include <optional>

#include "src/base/clock.hpp"
#include "src/base/lease_folder.hpp"

namespace dlrun {

struct LeaseTimes {
  Seconds renewal{5};   // the owner renews it so often
  Seconds silence{40};  // an owner elsewhere that did not for so long has ended
  Seconds wait{20};     // for a live one, which may be about to end
};

enum class LeaseState {
  free,
  in_use,
  unclear
};  // unclear: elsewhere, and neither silent for long nor seen to renew

class LeaseWatch {
 public:
  explicit LeaseWatch(LeaseTimes times) : times_(times) {}
  LeaseState look(const LeaseFile& newest, Life life, Ticks now);
  // Since it was last seen to be renewed; empty where that never was.
  std::optional<Seconds> since_renewal(Ticks now) const;

 private:
  LeaseTimes times_;
  int number_ = 0;
  std::string content_;
  Ticks changed_{};
  bool renewed_ = false;
};

}  // namespace dlrun
