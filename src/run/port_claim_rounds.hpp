// PortClaimRounds: the ports of a plan are claimed on all nodes before any rank starts. Pure bookkeeping:
// which nodes are asked in this round, what they found taken, and whether it is time to plan anew or to
// start. A round ends when every node that was asked has answered.
#pragma once

#include <set>

#include "src/plan/ports.hpp"

namespace dlrun::job {

class PortClaimRounds {
 public:
  // Each round finds at least one more port taken: somebody takes them as fast as we ask.
  static constexpr int kMaxRounds = 100;
  enum class Next { wait, start, plan_anew, give_up };

  // Begins a round: the nodes that have ports to claim. None: there is nothing to wait for.
  void ask(const std::vector<std::vector<plan::PortUse>>& by_node);
  const std::set<int>& asked() const { return asked_; }
  void taken(const std::string& host, int port, const std::string& by);
  Next answered(NodeIndex node);
  // All that was found taken, of all rounds.
  const plan::TakenPorts& all_taken() const { return taken_; }

 private:
  std::set<int> asked_;
  plan::TakenPorts taken_;
  bool clash_ = false;
  int rounds_ = 0;
};

}  // namespace dlrun::job
