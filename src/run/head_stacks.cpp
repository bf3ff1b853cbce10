// Where the ranks are: when somebody asks (dlrun stacks), and before a hung run is ended.
#include <utility>

#include "src/run/head.hpp"

namespace dlrun::job {

using namespace protocol;  // NOLINT: the messages are what this file is about

void Head::on_stacks_asked(const std::string& id) {
  if (is_over()) return;
  if (stacks_.open()) return void(stacks_asked_ = id);
  begin_stacks({StackRound::Reason::asked, id});
}

// Without a rank that was started there is nobody to ask, and the answer says so.
void Head::begin_stacks(StackRound::Question question) {
  const std::vector<NodeIndex> nodes = sliced_ ? agents_.working() : std::vector<NodeIndex>{};
  const int request = stacks_.begin(std::move(question), nodes, now_);
  if (nodes.empty()) return end_stacks();
  send(nodes, to_agent::ReadStacks{request});
  wake(Timer::stacks, StackRound::kLimit);
}

void Head::on(AgentState& agent, const from_agent::StacksRead& read) {
  std::vector<RankStack> stacks;
  for (const Json& json : read.ranks) {
    auto stack = rank_stack_from_json(json, "message 'stacks'");
    if (!stack) return refuse(agent, stack.error().text());
    if (rank_of(agent, stack->rank, "stacks") == nullptr) return;
    stacks.push_back(std::move(*stack));
  }
  if (!stacks_.expects(agent.node, read.request)) return;
  for (const RankStack& stack : stacks) stacks_.take(stack, agent.host);
  if (stacks_.over_with(agent.node)) end_stacks();
}

void Head::end_stacks() {
  std::vector<std::string> silent;
  for (const NodeIndex node : stacks_.waiting()) silent.push_back(agents_[node].host);
  Json document = stacks_.end(silent);
  act(action::Record{{{"event", "stacks"}, {"reason", document["reason"]}, {"text", document["text"]}}});
  if (stacks_.reason() == StackRound::Reason::hang && !stacks_.headline().empty())
    note("the run hangs: " + stacks_.headline() + " (stacks.json has the stacks)");
  act(action::WriteStacks{std::move(document)});
  end_hung_run();
  if (auto id = std::exchange(stacks_asked_, std::nullopt)) on_stacks_asked(*id);
}

// A hang. What the ranks are in is known only before they are ended.

void Head::on_hang(const std::optional<HangDetector::Hang>& hang) {
  if (!hang || hang_ || failures_.decided()) return;
  hang_ = hang;
  if (!stacks_.open()) begin_stacks({StackRound::Reason::hang});
}

// A run that has moved again meanwhile goes on.
void Head::end_hung_run() {
  const auto hang = std::exchange(hang_, std::nullopt);
  if (!hang || failures_.decided() || !hangs_.detector().verdict(now_)) return;
  const plan::RankPlan& rank = rank_plan(hang->rank);
  const AgentState& agent = agents_[rank.node];
  act(action::Record{
      {{"event", "hang"}, {"rank", hang->rank.get()}, {"host", agent.host}, {"reason", hang->reason}}});
  if (hang->node_is_bad) failures_.add_bad_host(agent.host);
  FirstFailure failure = failure_of_rank(plan(), rank, to_int(ExitCode::lost), hang->reason);
  failure.work_was_done = hang->kind == HangDetector::Kind::finalize;
  fail_rank(std::move(failure), rank);
}

void Head::no_answer_from(NodeIndex node) {
  on_hang(hangs_.forget(node, now_));
  if (stacks_.over_with(node)) end_stacks();
}

}  // namespace dlrun::job
