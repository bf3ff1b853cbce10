// Regrouping: how the ranks of an elastic job come together, at the start and again when the world changes:
// pure. Every world has a generation. Those of the next one are told to leave the world they are in; each
// answers with how far it has come and where it listens; once all have answered they are told of each other
// and of one that has come furthest. Where ranks are lost, they leave at once; where ranks are to leave or
// join, all leave together behind a step, for which they are asked first. A further loss at any moment begins
// the next generation, and answers of an older one are answered with the newest. It sends nothing and watches
// no time: the head does.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/plan/plan.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::job {

class Regrouping {
 public:
  explicit Regrouping(const plan::Plan& plan);

  using Order = std::variant<protocol::to_agent::Regroup, protocol::to_agent::NewWorld>;
  /// A rank waits for a world, or has left the run. What all ranks are to be told of it, if anything.
  std::optional<Order> left_world(const protocol::from_agent::LeftWorld& answer);
  /// These are no more. Unset where nobody has to regroup: they had ended, or nobody is left.
  std::optional<Order> lost(const std::vector<Rank>& ranks);
  /// It has ended well: it had nothing left to do, and is not missed.
  std::optional<Order> ended(Rank rank);

  /// These are to leave the run behind a step.
  void begin_leaving(const std::vector<Rank>& ranks);
  /// Ranks of a node that joins: they may be members once all of them wait for a world. `home`: a node of the
  /// same host that counts for both.
  void begin_joining(NodeIndex node, const std::vector<Rank>& ranks, std::optional<NodeIndex> home = {});
  /// What the members train, as the first of them has told.
  void set_job(const std::string& checksum) { job_ = checksum; }
  /// The node of a rank that waits and trains something else than the members; unset: there is none.
  std::optional<NodeIndex> stranger() const;
  /// Where somebody is to leave or may join, what all ranks are to be told, once.
  std::optional<protocol::to_agent::Regroup> ask();
  /// What has changed since the last call: ranks that left or joined the members.
  struct Changes {
    std::vector<Rank> left, joined;
  };
  Changes take_changes() { return std::exchange(changes_, {}); }

  /// Whether the job may go on without these, as far as they are left.
  bool can_spare(const std::vector<Rank>& ranks) const;
  bool is_member(Rank rank) const { return left_.contains(rank); }
  /// All of them that are left are to leave.
  bool are_leaving(const std::vector<Rank>& ranks) const;
  bool is_leaving(Rank rank) const { return leaving_.contains(rank) || parting_.contains(rank); }
  /// It tells how far the training is.
  Rank first_left() const { return left_.empty() ? Rank(0) : *left_.begin(); }
  std::size_t ranks_left() const { return left_.size(); }
  std::size_t nodes_left() const { return nodes_of(left_); }
  int generation() const { return generation_; }
  bool together() const { return together_; }  // in the world of this generation
  /// The same ranks have regrouped again and again, and have come no further.
  bool stuck() const { return repeats_ > kMaxRepeats; }

 private:
  using Answer = protocol::from_agent::LeftWorld;
  std::size_t nodes_of(const std::set<Rank>& ranks) const;
  static constexpr int kMaxRepeats = 3;
  protocol::to_agent::Regroup order() const;
  protocol::to_agent::Regroup begin_generation();
  std::optional<Order> take(const Answer& answer);
  std::optional<Order> complete();
  std::optional<Order> parted(const Answer& answer);
  std::optional<Order> wait_to_join(const Answer& answer);
  bool may_join(NodeIndex node) const;
  bool is_wanted() const;
  protocol::to_agent::Regroup change_world();
  protocol::to_agent::NewWorld new_world() const;

  std::map<Rank, NodeIndex> node_of_;
  std::map<NodeIndex, NodeIndex> home_of_;  // where that is another one
  plan::Elastic limits_;
  std::set<Rank> left_;             // the members
  std::set<Rank> leaving_;          // members that are to leave behind a step
  std::set<Rank> parting_;          // members no more, whose files may still be open
  std::set<Rank> joining_;          // no members yet
  std::map<Rank, Answer> waiting_;  // those of them that wait for a world
  std::map<Rank, Answer> answers_;  // of this generation
  std::string job_;                 // of the members; empty: not told yet
  Changes changes_;
  int generation_ = 0, repeats_ = 0;
  int asked_ = 0;         // the generation that ranks were asked to begin behind a step
  std::size_t done_ = 0;  // by the ranks of the last world
  bool together_ = false;
};

}  // namespace dlrun::job
