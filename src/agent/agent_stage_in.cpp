// The agent's part in what the job stages: the first node surveys the sources, every node says what it lacks,
// and the head tells who copies from whom.
#include <utility>

#include "src/agent/agent.hpp"

namespace dlrun::agent {
namespace {

namespace to_agent = protocol::to_agent;
namespace from_agent = protocol::from_agent;

// Who caused it has told the head by then.
constexpr Seconds kOthersTellFirst{5};

}  // namespace

void Agent::begin_staging() {
  phase_ = Phase::staging;
  staging_began_ = now_;
  if (slice_->node == NodeIndex(0)) act(action::SurveyStage{});
}

void Agent::take(const event::StageSurveyed& event) {
  if (phase_ != Phase::staging) return;
  if (!event.sources) return give_up(event.sources.error());
  send(from_agent::StageSources{*event.sources});
}

void Agent::said(const to_agent::StageIn& message) {
  if (is_due("stage_in", Phase::staging)) act(action::ClaimStage{message.token, message.sources});
}

void Agent::take(const event::StageClaimed& event) {
  if (phase_ != Phase::staging) return;
  if (!event.needs) return give_up(event.needs.error());
  send(*event.needs);
}

void Agent::said(const to_agent::StageChain& message) {
  if (!is_due("stage_chain", Phase::staging)) return;
  const auto nodes = static_cast<int>(slice_->plan.nodes.size());
  const auto items = static_cast<int>(slice_->plan.stage.items.size());
  bool known = (!message.previous || message.previous->get() < nodes) &&
               (!message.next || message.next->get() < nodes) && (!message.previous || message.port != 0);
  for (const int item : message.items) known = known && item < items;
  if (!known)
    return give_up(
        {.kind = ErrorKind::internal, .what = "message 'stage_chain' names what the plan does not have"});
  act(action::CopyStage{message});
}

void Agent::take(const event::StageMoved& event) {
  if (phase_ == Phase::staging && !head_gone_) send(from_agent::StageMoved{event.bytes});
}

void Agent::take(const event::StageCopied& event) {
  if (phase_ != Phase::staging) return;
  if (event.copied) {
    send(from_agent::Staged{now_ - staging_began_, event.bytes, *event.copied});
    return begin_prolog();
  }
  if (event.copied.error().kind != ErrorKind::lost) return give_up(event.copied.error());
  stage_lost_ = event.copied.error();
  wake(action::Alarm::stage, kOthersTellFirst);
}

void Agent::take(const event::StageDue&) {
  if (phase_ == Phase::staging && stage_lost_ && !supervisor_->stop_was_asked()) give_up(*stage_lost_);
}

void Agent::take(const event::StageRemoved& event) {
  for (const std::string& left : event.left) send(from_agent::Log{left});
  phase_ == Phase::cleaning ? act(action::EndStrays{}) : close_ranks();
}

}  // namespace dlrun::agent
