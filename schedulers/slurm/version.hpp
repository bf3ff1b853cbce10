// Which Slurm srun belongs to. The question takes as long as a dozen starts of other programs, so it is asked
// while the allocation is still being read, and the answer waited for where it is needed.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string_view>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun {

struct SlurmVersion {
  int major = 0, minor = 0;
};
// "slurm 22.05.8", "slurm-wlm 23.11.4".
std::optional<SlurmVersion> parse_slurm_version(std::string_view text);

class SrunVersion {
 public:
  // Asks, and returns at once.
  static std::shared_ptr<const SrunVersion> ask(const Environment& environment);
  // Waits for the answer; an Error (unavailable) where it is none.
  Result<SlurmVersion> get() const { return answer_.get(); }

 private:
  std::shared_future<Result<SlurmVersion>> answer_;
};

}  // namespace dlrun
