// CpuEnergy: the joules that this node's processors have used since begin(), as the kernel counts them of
// whole packages (RAPL, through powercap). Others on the node count with us. Counters that are not there, or
// that only root may read, are said with the reason, and are never 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::agent {

class CpuEnergy {
 public:
  explicit CpuEnergy(std::filesystem::path powercap = "/sys/class/powercap")
      : powercap_(std::move(powercap)) {}

  /// Counts from here on.
  void begin();
  /// Since then. Call it at least every few minutes: a counter begins anew once it is full.
  Result<double> joules();

 private:
  struct Package {
    std::filesystem::path counter;  // of microjoules
    std::uint64_t full = 0;         // the largest value
    std::uint64_t last = 0;
  };
  Result<void> find_packages();
  std::filesystem::path powercap_;
  std::vector<Package> packages_;
  Error why_not_{.kind = ErrorKind::unavailable, .what = "not begun", .where = {}, .hint = {}, .also = {}};
  double microjoules_ = 0;
};

}  // namespace dlrun::agent
