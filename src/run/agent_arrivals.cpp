#include "src/run/agent_arrivals.hpp"

#include <vector>

#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

// The names of many hosts would fill a screen.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxShown = 12;
  if (names.size() <= kMaxShown) return join(names, ", ");
  return fmt::format("{} and {} more", join(std::vector(names.begin(), names.begin() + kMaxShown), ", "),
                     names.size() - kMaxShown);
}

}  // namespace

void AgentArrivals::give_up(const std::string& why) {
  for (int node = 0; node < static_cast<int>(hosts_.size()); ++node)
    if (!is_here(NodeIndex(node)))
      missing_.emplace(
          node, Error{.kind = ErrorKind::unavailable, .what = why, .where = {}, .hint = {}, .also = {}});
}

std::vector<std::string> AgentArrivals::missing_hosts() const {
  std::vector<std::string> out;
  for (const auto& [index, why] : missing_) out.push_back(hosts_.at(static_cast<std::size_t>(index)));
  return out;
}

std::optional<Error> AgentArrivals::error() const {
  if (missing_.empty()) return std::nullopt;
  const std::vector<std::string> hosts = missing_hosts();
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // in the order of the nodes
  for (const auto& [index, why] : missing_) {
    const std::string& text = why.what;  // a lambda of clang 14 cannot have the binding itself
    const std::string host = hosts_.at(static_cast<std::size_t>(index));
    auto same = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == text; });
    if (same == reasons.end()) same = reasons.insert(reasons.end(), {text, {}});
    same->second.push_back(host);
  }
  const Error& first = missing_.begin()->second;
  Error out = first;
  out.where.clear();
  if (hosts_.size() == 1) {
    out.what = fmt::format("{} cannot be reached by {}: {}", hosts.front(), launcher_, first.what);
    return out;
  }
  out.what = fmt::format("{} of {} nodes cannot be reached by {}: {}", hosts.size(), hosts_.size(), launcher_,
                         some_of(hosts));
  out.also.clear();
  for (const auto& [why, whose] : reasons) out.also.push_back(fmt::format("{}: {}", some_of(whose), why));
  return out;
}

}  // namespace dlrun::job
