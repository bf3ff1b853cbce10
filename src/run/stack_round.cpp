#include "src/run/stack_round.hpp"

#include <utility>

namespace dlrun::job {

int StackRound::begin(Question question, const std::vector<NodeIndex>& nodes, Ticks now) {
  question_ = std::move(question);
  waiting_ = {nodes.begin(), nodes.end()};
  began_ = now;
  fold_ = {};
  return ++request_;
}

Json StackRound::end(const std::vector<std::string>& silent) {
  waiting_.clear();
  return {{"schema", "dlrun.stacks/1"},
          {"request", question_.id},
          {"reason", question_.reason == Reason::hang ? "hang" : "asked"},
          {"ranks", fold_.ranks()},
          {"read", fold_.read()},
          {"text", fold_.headline()},
          {"groups", fold_.groups()},
          {"threads", fold_.threads()},
          {"problems", fold_.problems()},
          {"nccl_traces", fold_.nccl_traces()},
          {"silent_hosts", silent}};
}

}  // namespace dlrun::job
