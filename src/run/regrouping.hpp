// Regrouping: how the ranks of an elastic job come together, at the start and again when some of them are
// lost: pure. Every world has a generation. Those that are left are told to leave the world they are in; each
// answers with how far it has come and where it listens; once all have answered they are told of each other
// and of one that has come furthest. A further loss at any moment begins the next generation, and answers of
// an older one are answered with the newest. It sends nothing and watches no time: the head does.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "src/plan/plan.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::job {

class Regrouping {
 public:
  explicit Regrouping(const plan::Plan& plan);

  using Order = std::variant<protocol::to_agent::Regroup, protocol::to_agent::NewWorld>;
  /// A rank waits for a world. What all ranks are to be told of it, if anything.
  std::optional<Order> left_world(const protocol::from_agent::LeftWorld& answer);
  /// These are no more. Unset where nobody has to regroup: they had ended, or nobody is left.
  std::optional<protocol::to_agent::Regroup> lost(const std::vector<Rank>& ranks);
  /// It has ended well: it had nothing left to do, and is not missed.
  std::optional<Order> ended(Rank rank);

  /// Whether the job may go on without these, as far as they are left.
  bool can_spare(const std::vector<Rank>& ranks) const;
  /// It tells how far the training is.
  Rank first_left() const { return left_.empty() ? Rank(0) : *left_.begin(); }
  std::size_t ranks_left() const { return left_.size(); }
  std::size_t nodes_left() const { return nodes_of(left_); }
  int generation() const { return generation_; }
  bool together() const { return together_; }  // in the world of this generation
  /// The same ranks have regrouped again and again, and have come no further.
  bool stuck() const { return repeats_ > kMaxRepeats; }

 private:
  std::size_t nodes_of(const std::set<Rank>& ranks) const;
  static constexpr int kMaxRepeats = 3;
  protocol::to_agent::Regroup order() const;
  protocol::to_agent::Regroup begin_generation();
  std::optional<Order> take(const protocol::from_agent::LeftWorld& answer);
  std::optional<Order> complete();
  protocol::to_agent::NewWorld new_world() const;

  std::vector<NodeIndex> node_of_;  // by rank
  plan::Elastic limits_;
  std::set<Rank> left_;
  std::map<Rank, protocol::from_agent::LeftWorld> answers_;  // of this generation
  int generation_ = 0, repeats_ = 0;
  std::size_t done_ = 0;  // by the ranks of the last world
  bool together_ = false;
};

}  // namespace dlrun::job
