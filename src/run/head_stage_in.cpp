// The head's part in what the job stages: it tells what the first node found, and who copies from whom. The
// bytes do not come here.
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

bool Head::has_stage(AgentState& agent, std::string_view message) {
  const bool awaited = stage_ && !stage_->is_staged(agent.node);
  if (!awaited) refuse(agent, fmt::format("message '{}', and nothing is staged there", message));
  return awaited;
}

void Head::on(AgentState& agent, const from_agent::StageSources& found) {
  if (!has_stage(agent, "stage_sources")) return;
  if (agent.node != NodeIndex(0))
    return refuse(agent, "message 'stage_sources' of a node that is not the first");
  if (auto taken = stage_->surveyed(found.sources); !taken) return refuse(agent, taken.error().what);
  send(agents_.there(), to_agent::StageIn{settings_.relay_token, found.sources});
}

void Head::on(AgentState& agent, from_agent::StageNeeds& needs) {
  if (!has_stage(agent, "stage_needs")) return;
  if (auto taken = stage_->needs(agent.node, std::move(needs)); !taken)
    return refuse(agent, taken.error().what);
  if (!stage_->all_told()) return;
  for (auto& [node, chain] : stage_->chain(plan()))
    if (agents_[node].is_there()) send({node}, std::move(chain));
}

void Head::on(AgentState& agent, const from_agent::StageMoved& moved) {
  if (has_stage(agent, "stage_moved")) stage_->moved(agent.node, moved.bytes);
}

// The setup of the environment has its own limit, which begins here.
void Head::on(AgentState& agent, const from_agent::Staged& staged) {
  if (!has_stage(agent, "staged")) return;
  stage_->staged(agent.node, staged.bytes);
  act(action::ShowPhase{stage_->phase(now_)});
  if (!stage_->all_staged()) return;
  times_.staged(stage_->since_begin(now_));
  act(action::Record{{{"event", "all_staged"},
                      {"seconds", stage_->since_begin(now_).count()},
                      {"bytes", stage_->bytes_of_chain()}}});
  setup_->begin(now_);
  on_woken(Timer::setup);
}

}  // namespace dlrun::job
