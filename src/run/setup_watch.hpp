// SetupWatch: which nodes still run the prolog (modules, activation, setup lines), and since when. Pure: the
// head asks it when to say so and when launch.setup-timeout has passed. The time is not part of the start
// timeout: a prolog that brings data may take long.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::job {

class SetupWatch {
 public:
  SetupWatch(const plan::Plan& plan, Ticks began);

  /// The time counts from here: before, other things were waited for.
  void begin(Ticks now) { began_ = now; }
  void ready(NodeIndex node) { waiting_.erase(node.get()); }
  bool all_ready() const { return waiting_.empty(); }
  // Nodes that are not ready although the limit has passed.
  std::vector<NodeIndex> late(Ticks now) const;

  std::string phase() const;  // "setting up the environment on n1, n3"
  // What is said once in a while: empty unless it is time to.
  std::string waiting_text(Ticks now);
  std::string timeout_text() const;
  Seconds interval() const;  // when to ask again

 private:
  std::string waiting_hosts() const;

  std::vector<std::string> hosts_;
  Seconds limit_;
  Ticks began_;
  Seconds next_said_;
  std::set<int> waiting_;
};

}  // namespace dlrun::job
