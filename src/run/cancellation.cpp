#include "src/run/cancellation.hpp"

#include <csignal>

namespace dlrun::job {
namespace {

// Signals of one cancellation come within milliseconds; a process that dies of one may write a core before.
constexpr Seconds kSameSignal{5};

}  // namespace

std::optional<std::string> Cancellation::sent_by(const CaughtSignal& signal) const {
  if (signal.sender != SignalSender::other_user || scheduler_job_.empty()) return std::nullopt;
  return scheduler_job_;
}

std::optional<CaughtSignal> Cancellation::of_the_run(Time time) const {
  if (told_.empty()) return std::nullopt;
  if (nodes_ > 1 && told_.size() == nodes_) return told_.begin()->second;
  if (time == Time::now) return std::nullopt;
  for (const auto& [node, signal] : told_)
    if (sent_by(signal)) return signal;
  return std::nullopt;
}

bool Cancellation::explains(const CaughtSignal& signal, const FirstFailure& failure, Seconds before) const {
  if (before < kSignalWindow && sent_by(signal))
    return true;  // others fail of what the first one's end breaks
  return before < kSameSignal && failure.code == 128 + signal.number;
}

bool Cancellation::may_be_part_of_one(const FirstFailure& failure) {
  return failure.code == 128 + SIGTERM || failure.code == 128 + SIGINT || failure.code == 128 + SIGHUP;
}

}  // namespace dlrun::job
