#include "src/job/outcome.hpp"

#include <fmt/core.h>

namespace dlrun::job {

std::string Culprit::text() const {
  if (!rank) return fmt::format("{}: {}", host, reason);
  return fmt::format("{} {} (rank {}) on {}: {}", role, task_index, *rank, host, reason);
}

}  // namespace dlrun::job
