// The agent's part in what the job stages: a node surveys the sources, every node says what it lacks,
// and the head tells who copies from whom. Where an elastic job loses a node meanwhile, the others drop what
// they have copied and begin anew.
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
  if (std::exchange(early_survey_, false)) act(action::SurveyStage{});
  if (const auto early = std::exchange(early_stage_, std::nullopt)) said(*early);
}

void Agent::said(const to_agent::StageSurvey&) {
  if (phase_ == Phase::preparing) return void(early_survey_ = true);
  if (is_due("stage_survey", Phase::staging)) act(action::SurveyStage{});
}

// Who has all already has told so, and keeps it.
void Agent::said(const to_agent::StageDrop&) {
  early_survey_ = false;
  early_stage_.reset();
  if (phase_ == Phase::preparing) return send(from_agent::StageDropped{});
  if (!stages()) return;
  stage_drops_ = true;
  stage_lost_.reset();
  act(action::RemoveStage{});
}

void Agent::take(const event::StageSurveyed& event) {
  if (!stages()) return;
  if (!event.sources) return give_up(event.sources.error());
  send(from_agent::StageSources{*event.sources});
}

void Agent::said(const to_agent::StageIn& message) {
  if (phase_ == Phase::preparing) return void(early_stage_ = message);
  if (is_due("stage_in", Phase::staging)) act(action::ClaimStage{message.token, message.sources});
}

void Agent::take(const event::StageClaimed& event) {
  if (!stages()) return;
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
  if (stages() && !head_gone_) send(from_agent::StageMoved{event.bytes});
}

void Agent::take(const event::StageCopied& event) {
  if (!stages()) return;
  if (event.copied) {
    send(from_agent::Staged{now_ - staging_began_, event.bytes, *event.copied});
    return begin_prolog();
  }
  if (event.copied.error().kind != ErrorKind::lost) return give_up(event.copied.error());
  stage_lost_ = event.copied.error();
  const Seconds others_tell =
      slice_->plan.elastic ? slice_->plan.limits.lost_after + kOthersTellFirst : kOthersTellFirst;
  stage_lost_due_ = now_ + std::chrono::duration_cast<Ticks::duration>(others_tell);
  wake(action::Alarm::stage, others_tell);
}

void Agent::take(const event::StageDue&) {
  if (!stages() || !stage_lost_ || now_ < stage_lost_due_) return;
  if (!supervisor_->stop_was_asked()) give_up(*stage_lost_);
}

void Agent::take(const event::StageRemoved& event) {
  for (const std::string& left : event.left) send(from_agent::Log{left});
  if (std::exchange(stage_drops_, false) && phase_ == Phase::staging) {
    if (event.left.empty()) return send(from_agent::StageDropped{});
    return give_up({.kind = ErrorKind::io, .what = "staging cannot begin anew: " + event.left.front()});
  }
  phase_ == Phase::cleaning ? act(action::EndStrays{}) : close_ranks();
}

}  // namespace dlrun::agent
