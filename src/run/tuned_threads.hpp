// TunedThreads: with how many threads ranks were measured to be fastest, remembered for the user, the model
// of the processors and the number of cores of each rank. It becomes OMP_NUM_THREADS where nothing else sets
// it. Only measured values are remembered; a file that cannot be read counts as forgotten.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "schedulers/allocation.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::job {

class TunedThreads {
 public:
  explicit TunedThreads(const Environment& environment);

  /// By the number of cores of a rank.
  std::map<int, int> of(const std::string& cpu_model) const;
  Result<void> remember(const std::string& cpu_model, int cores, int threads) const;
  /// All that is remembered, by the model of the processors.
  std::map<std::string, std::map<int, int>> all() const;
  /// Whether anything is remembered at all.
  bool any() const;

 private:
  std::optional<std::filesystem::path> folder_;  // unset: the user has none
};

/// What is remembered of this machine's processors, where it is one of these nodes.
std::map<int, int> tuned_threads_of(const Allocation& allocation, const Environment& environment);

}  // namespace dlrun::job
