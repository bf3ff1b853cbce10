// StallNotice: what people are told while the run directory's file system takes no writes. It mostly stalls
// for all nodes at once: the first one that says so is named, and the end is told when it works for all.
// Pure.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "src/base/clock.hpp"

namespace dlrun::job {

class StallNotice {
 public:
  std::optional<std::string> stalled(const std::string& host, Seconds so_far);
  std::optional<std::string> resumed(const std::string& host, Seconds stall);

 private:
  std::set<std::string> hosts_;  // that wait
  Seconds longest_{0};
};

}  // namespace dlrun::job
