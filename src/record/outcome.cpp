#include "src/record/outcome.hpp"

#include <fmt/core.h>

namespace dlrun::job {

std::string FirstFailure::text() const {
  const std::string said = cause.empty() ? reason : reason + ": " + cause;
  if (!rank) return fmt::format("{}: {}", host, said);
  return fmt::format("{} {} (rank {}) on {}: {}", role, task_index, *rank, host, said);
}

}  // namespace dlrun::job
