#include "src/process/supervisor.hpp"

#include <csignal>

#include "src/base/overloaded.hpp"

namespace dlrun {
namespace {

Ticks later(Ticks now, Seconds delay) {
  return now + std::chrono::duration_cast<Ticks::duration>(delay);
}

}  // namespace

Supervisor::Supervisor(int members, Policy policy) : policy_(policy) {
  for (int member = 0; member < members; ++member) left_.insert(member);
}

std::vector<Supervisor::Action> Supervisor::terminate(Ticks now) {
  state_ = State::terminating;
  deadline_ = later(now, failed_ ? policy_.grace_after_failure.value_or(policy_.grace) : policy_.grace);
  return {Signal{SIGTERM}, WakeAt{deadline_}};
}

std::vector<Supervisor::Action> Supervisor::kill() {
  state_ = State::killing;
  return {Signal{SIGKILL}};
}

std::vector<Supervisor::Action> Supervisor::advance(Ticks now) {
  if (now < deadline_) return {};
  if (state_ == State::settling) return terminate(now);
  if (state_ == State::terminating) return kill();
  return {};
}

std::vector<Supervisor::Action> Supervisor::on(const Event& event, Ticks now) {
  if (state_ == State::finished) return {};
  return std::visit(Overloaded{
                        [&](const Failed& failed) -> std::vector<Action> {
                          if (!first_failure_) first_failure_ = failed.failure;
                          failed_ = true;
                          const bool early = state_ == State::running || state_ == State::settling;
                          if (early && failed.urgency == Urgency::now) return terminate(now);
                          if (state_ != State::running) return {};
                          state_ = State::settling;
                          deadline_ = later(now, policy_.failure_window);
                          return {WakeAt{deadline_}};
                        },
                        [&](const Gone& gone) -> std::vector<Action> {
                          left_.erase(gone.member);
                          if (!left_.empty()) return {};
                          state_ = State::finished;
                          return {Finish{}};
                        },
                        [&](const Stop& stop) -> std::vector<Action> {
                          stop_asked_ = true;
                          failed_ = failed_ || stop.after_failure;
                          if (state_ == State::killing) return {};
                          if (stop.urgency == Urgency::now) return kill();
                          return state_ == State::terminating ? std::vector<Action>{} : terminate(now);
                        },
                        [&](const Tick&) { return advance(now); },
                    },
                    event);
}

}  // namespace dlrun
