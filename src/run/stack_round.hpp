// StackRound: asking every agent once for the stacks of its ranks, and the document of the answers
// (dlrun.stacks/1, stacks.json). Pure. The round ends when the last agent has answered or has gone, or when
// the limit has passed; who did not answer is named.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/protocol/messages.hpp"
#include "src/record/stack_fold.hpp"

namespace dlrun::job {

class StackRound {
 public:
  /// Beyond what an agent takes at most to read its ranks (stack_reader.hpp).
  static constexpr Seconds kLimit{15};
  enum class Reason { asked, hang };
  struct Question {
    Reason reason = Reason::asked;
    std::string id = {};  // of who asked
  };

  /// The next round, with the agents of these nodes. The number that their answers must have.
  int begin(Question question, const std::vector<NodeIndex>& nodes, Ticks now);
  bool open() const { return !waiting_.empty(); }
  Reason reason() const { return question_.reason; }
  /// A timer may be a little early.
  bool late(Ticks now) const { return open() && now - began_ >= kLimit - Seconds(0.5); }
  /// An answer to a round before this one counts for nothing.
  bool expects(NodeIndex node, int request) const { return request == request_ && waiting_.contains(node); }

  void take(const RankStack& stack, const std::string& host) { fold_.add(stack, host); }
  /// It has told all, or will tell nothing. True: the round is over with it.
  bool over_with(NodeIndex node) { return waiting_.erase(node) > 0 && waiting_.empty(); }

  /// Ends the round. `silent`: hosts that have not answered.
  Json end(const std::vector<std::string>& silent);
  std::vector<NodeIndex> waiting() const { return {waiting_.begin(), waiting_.end()}; }
  std::string headline() const { return fold_.headline(); }

 private:
  Question question_;
  int request_ = 0;
  Ticks began_{};
  std::set<NodeIndex> waiting_;
  StackFold fold_;
};

}  // namespace dlrun::job
