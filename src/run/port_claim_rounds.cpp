#include "src/run/port_claim_rounds.hpp"

namespace dlrun::job {

void PortClaimRounds::ask(const std::vector<std::vector<plan::PortUse>>& by_node) {
  asked_.clear();
  clash_ = false;
  ++rounds_;
  for (std::size_t node = 0; node < by_node.size(); ++node)
    if (!by_node[node].empty()) asked_.insert(static_cast<int>(node));
}

void PortClaimRounds::taken(const std::string& host, int port, const std::string& by) {
  taken_[host].emplace(port, by);
  clash_ = true;
}

PortClaimRounds::Next PortClaimRounds::answered(NodeIndex node) {
  asked_.erase(node.get());
  if (!asked_.empty()) return Next::wait;
  if (!clash_) return Next::start;
  return rounds_ < kMaxRounds ? Next::plan_anew : Next::give_up;
}

}  // namespace dlrun::job
