// The head's part in what the job stages: it tells what the leading node found, and who copies from whom. The
// bytes do not come here. A node that joins later stages alone.
#include <utility>

#include "src/base/json.hpp"
#include "src/run/head.hpp"

namespace dlrun::job {
namespace {

using namespace protocol;  // NOLINT: the messages are what this file is about

constexpr Seconds kStageInterval{1};

}  // namespace

void Head::watch_stage() {
  stage_.emplace(plan(), now_);
  act(action::ShowPhase{stage_->phase(now_)});
  send({stage_->lead()}, to_agent::StageSurvey{});
  on_woken(Timer::stage);
}

void Head::say_stage() {
  if (stage_->all_staged() || failures_.first() || supervisor_.stop_was_asked()) return;
  if (const auto late = stage_->late(now_); !late.empty()) {
    for (const NodeIndex node : late) fail_node(agents_[node], ExitCode::unavailable, stage_->timeout_text());
    return;
  }
  act(action::ShowPhase{stage_->phase(now_)});
  wake(Timer::stage, kStageInterval);
}

// Of this agent's staging; null where there is none, for which the agent is lost.
StageWatch* Head::stage_of(AgentState& agent, std::string_view message) {
  StageWatch* out = stage_ ? &*stage_ : nullptr;
  if (Joining::Node* const one = joining_.find(agent.node)) out = one->stage ? &*one->stage : nullptr;
  if (agent.given_up || (out != nullptr && !out->has(agent.node))) return nullptr;
  if (out != nullptr && !out->is_staged(agent.node)) return out;
  refuse(agent, fmt::format("message '{}', and nothing is staged there", message));
  return nullptr;
}

void Head::on(AgentState& agent, const from_agent::StageSources& found) {
  StageWatch* const stage = stage_of(agent, "stage_sources");
  if (stage == nullptr || stage->is_dropping(agent.node)) return;
  if (agent.node != stage->lead())
    return refuse(agent, "message 'stage_sources' of a node that does not lead");
  const bool joins = joining_.find(agent.node) != nullptr;
  if (found.sources != stage->sources() && (joins || stage->any_is_staged())) {
    const Error changed{.kind = ErrorKind::input,
                        .what = "what the job stages has changed since the others copied it",
                        .hint = "stage only files that nothing writes to"};
    return joins ? give_up_joining(agent.node, changed) : fail_node(agent, ExitCode::input, changed.text());
  }
  if (auto taken = stage->surveyed(found.sources); !taken) return refuse(agent, taken.error().what);
  if (joins) return send_chain(*stage);
  send(present(stage->waiting()), to_agent::StageIn{settings_.relay_token, found.sources});
}

void Head::on(AgentState& agent, from_agent::StageNeeds& needs) {
  StageWatch* const stage = stage_of(agent, "stage_needs");
  if (stage == nullptr || stage->is_dropping(agent.node)) return;
  if (auto taken = stage->needs(agent.node, std::move(needs)); !taken)
    return refuse(agent, taken.error().what);
  if (!stage->all_told()) return;
  stage->needs_survey() ? send({stage->lead()}, to_agent::StageSurvey{}) : send_chain(*stage);
}

void Head::send_chain(const StageWatch& stage) {
  for (auto& [node, chain] : stage.chain(plan()))
    if (agents_[node].is_there()) send({node}, std::move(chain));
}

void Head::on(AgentState& agent, const from_agent::StageMoved& moved) {
  StageWatch* const stage = stage_of(agent, "stage_moved");
  if (stage != nullptr && !stage->is_dropping(agent.node)) stage->moved(agent.node, moved.bytes);
}

// The setup of the environment has its own limit, which begins here.
void Head::on(AgentState& agent, const from_agent::Staged& staged) {
  StageWatch* const stage = stage_of(agent, "staged");
  if (stage == nullptr) return;
  const bool was_dropping = stage->is_dropping(agent.node);
  stage->staged(agent.node, staged.bytes);
  if (joining_.find(agent.node) != nullptr) return limit_setup_of_joining(agent.node);
  act(action::ShowPhase{stage_->phase(now_)});
  if (stage_->all_staged()) return all_staged();
  if (was_dropping) stage_again();
}

void Head::all_staged() {
  times_.staged(stage_->since_begin(now_));
  act(action::Record{{{"event", "all_staged"},
                      {"seconds", stage_->since_begin(now_).count()},
                      {"bytes", stage_->bytes_of_chain()}}});
  setup_->begin(now_);
  on_woken(Timer::setup);
}

// The chain of those that copy may have led through the lost node.
void Head::stage_without(NodeIndex lost) {
  const std::vector<NodeIndex> others = stage_->lost(lost, now_);
  if (stage_->all_staged()) return all_staged();
  send(present(others), to_agent::StageDrop{});
}

void Head::on(AgentState& agent, const from_agent::StageDropped&) {
  StageWatch* const stage = stage_of(agent, "stage_dropped");
  if (stage == nullptr) return;
  if (!stage->is_dropping(agent.node)) return refuse(agent, "message 'stage_dropped' was not asked for");
  stage->dropped(agent.node);
  stage_again();
}

void Head::stage_again() {
  if (!stage_->any_is_dropping()) send({stage_->lead()}, to_agent::StageSurvey{});
}

}  // namespace dlrun::job
