#include "src/run/deadline.hpp"

#include <algorithm>

#include "src/base/overloaded.hpp"

namespace dlrun::job {
namespace {

// A share of the allocation's time: two minutes and a day both keep nearly all of it for training.
constexpr double kMarginShare = 0.02, kSaveShare = 0.05, kTryShare = 0.1, kReadShare = 0.1, kLeaveShare = 0.1;
constexpr Seconds kMaxHold{
    5};  // for the scheduler's answer: a controller that hangs must not cost the checkpoint
// A program that has saved still has to end: Python takes half a second to seconds, and the first that can be
// measured is the only one.
constexpr Seconds kMinLeave{1}, kMaxLeave{5};
// A program that reports nothing saves at the end of its epoch, for all that is known.
constexpr Seconds kUnreportedSave{60};

Ticks::duration ticks_of(Seconds time) {
  return std::chrono::duration_cast<Ticks::duration>(time);
}

}  // namespace

Deadline::Policy Deadline::policy_for(std::string_view scheduler, std::optional<Seconds> requested_lead) {
  Policy out{.lead = requested_lead};
  if (scheduler != "slurm") return out;
  out.min_margin = Seconds(5);
  out.max_margin = Seconds(60);
  return out;
}

Seconds Deadline::margin() const {
  if (!end_) return policy_.min_margin;
  Seconds out = std::clamp(total() * kMarginShare, policy_.min_margin, policy_.max_margin);
  if (policy_.lead) out = std::min(out, *policy_.lead / 2);
  return std::min(out, total() / 4);
}

// A save may take longer than the ones before: a quarter on top. An unmeasured one gets a guess by the
// length of the job, since nothing better is known.
Seconds Deadline::lead() const {
  if (policy_.lead) return *policy_.lead;
  if (!end_) return margin();
  Seconds save =
      longest_save_ ? *longest_save_ * 1.25 : std::clamp(total() * kSaveShare, Seconds(5), Seconds(300));
  if (!longest_save_ && !first_step_) save = std::max(save, kUnreportedSave);
  const Seconds pause = std::min(longest_pause_, total() / 4);
  return std::min(save + pause + way_out() + margin(), total() / 2);
}

Seconds Deadline::way_out() const {
  return std::clamp(total() * kLeaveShare, kMinLeave, kMaxLeave);
}

Ticks Deadline::before_end(Seconds time) const {
  return *end_ - ticks_of(time);
}

// Early enough to be of use, late enough to be no loss where the program's own first one comes soon.
std::optional<Ticks> Deadline::try_save_at() const {
  if (tried_ || longest_save_ || policy_.lead || !first_step_ || state_ != State::running)
    return std::nullopt;
  return *first_step_ + ticks_of(std::clamp(total() * kTryShare, Seconds(2), Seconds(60)));
}

void Deadline::note_step(Ticks now) {
  if (!first_step_) first_step_ = now;
  if (last_step_) longest_pause_ = std::max(longest_pause_, Seconds(now - *last_step_));
  last_step_ = now;
}

void Deadline::note(const Event& event, Ticks now) {
  std::visit(Overloaded{[&](const Ends& ends) {
                          end_ = ends.at;
                          held_until_.reset();
                        },
                        [&](const Started&) { started_ = true; },
                        [&](const Slept&) {
                          held_until_ = now + ticks_of(kMaxHold);
                          last_step_.reset();
                          next_read_ = now;
                        },
                        [&](const EndUnknown&) { held_until_.reset(); }, [&](const Step&) { note_step(now); },
                        [&](const Saved& saved) {
                          longest_save_ = std::max(longest_save_.value_or(Seconds(0)), saved.took);
                        },
                        [](const Tick&) {}},
             event);
}

std::vector<Deadline::Action> Deadline::due(Ticks now) {
  std::vector<Action> out;
  if (!next_read_ || now >= *next_read_) {
    if (next_read_) out.emplace_back(ReadEnd{});
    const Seconds left = end_ ? Seconds(*end_ - now) : Seconds(6000);
    next_read_ = now + ticks_of(std::clamp(left * kReadShare, Seconds(15), Seconds(600)));
  }
  if (!end_ || (held_until_ && now < *held_until_)) return out;
  if (now >= before_end(margin() / 3) && state_ != State::killing) {
    state_ = State::killing;
    out.emplace_back(EndRanks{Force::kill});
  } else if (now >= before_end(margin()) && state_ < State::ending) {
    state_ = State::ending;
    out.emplace_back(EndRanks{Force::term});
  } else if (started_ && now >= before_end(lead()) && state_ == State::running) {
    state_ = State::asked;
    out.emplace_back(SaveAndStop{Seconds(*end_ - now)});
  } else if (const auto at = try_save_at(); at && now >= *at) {
    tried_ = true;
    out.emplace_back(TrySave{});
  }
  return out;
}

std::optional<Ticks> Deadline::next(Ticks now) const {
  Ticks out = next_read_.value_or(now);
  if (held_until_ && now < *held_until_) return std::min(out, *held_until_);
  if (end_) {
    if (state_ == State::running && started_) out = std::min(out, before_end(lead()));
    if (state_ < State::ending) out = std::min(out, before_end(margin()));
    if (state_ < State::killing) out = std::min(out, before_end(margin() / 3));
    if (const auto at = try_save_at()) out = std::min(out, *at);
  }
  return std::max(out, now);
}

std::vector<Deadline::Action> Deadline::on(const Event& event, Ticks now) {
  note(event, now);
  std::vector<Action> out = due(now);
  const auto wake = next(now);
  // A step comes every few milliseconds: the wake-up is set anew only where it has become another.
  if (wake == armed_ && !std::holds_alternative<Tick>(event)) return out;
  armed_ = wake;
  out.emplace_back(WakeAt{*wake});
  return out;
}

}  // namespace dlrun::job
