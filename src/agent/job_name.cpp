#include "src/agent/job_name.hpp"

namespace dlrun::agent {

std::string job_name(const plan::Plan& plan) {
  constexpr std::size_t kMaxLength = 40;  // of the id: what makes it unique is at its end
  const std::size_t dropped = plan.job_id.size() > kMaxLength ? plan.job_id.size() - kMaxLength : 0;
  std::string name = "dlrun-" + plan.job_id.substr(dropped) + "-" + std::to_string(plan.attempt);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain) c = '-';
  }
  return name;
}

}  // namespace dlrun::agent
