#include "src/run/hang_detector.hpp"

#include <algorithm>
#include <tuple>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::job {
namespace {

using protocol::from_agent::RankProbe;

bool passed_since(Ticks then, Seconds limit, Ticks now) {
  return limit.count() > 0 && now - then > limit;
}

// The lower, the more likely it is that it holds up the others.
int weight(const std::optional<RankProbe>& probe) {
  if (!probe) return 2;
  return probe->state == 'T' || probe->state == 't' ? 0 : probe->state == 'D' ? 1 : 2;
}

std::string state_text(const RankProbe& probe) {
  const std::string process = fmt::format("its process {} ({})", probe.pid, probe.name);
  if (probe.state == 'T') return process + " is stopped, as by SIGSTOP";
  if (probe.state == 't') return process + " is stopped by a debugger";
  if (probe.state != 'D') return {};
  return process + " waits inside the kernel" +
         (probe.waits.empty() ? "" : fmt::format(" in {}", probe.waits)) +
         ", as for a disk or file server that does not answer";
}

}  // namespace

bool HangDetector::watches() const {
  return limits_.no_output.count() > 0 || limits_.no_progress.count() > 0 || limits_.finalize.count() > 0;
}

Seconds HangDetector::interval() const {
  Seconds shortest{4};
  for (const Seconds limit : {limits_.no_output, limits_.no_progress, limits_.finalize})
    if (limit.count() > 0) shortest = std::min(shortest, limit / 4);
  return std::max(shortest, Seconds(0.05));
}

void HangDetector::started(Rank rank, Ticks now) {
  State& state = at(rank);
  state.running = true;
  state.started = state.output = state.progress = now;
}

void HangDetector::printed(Rank rank, Ticks now) {
  at(rank).output = now;
  at(rank).prints = 1;
}

// A new step is progress; so is anything else than a step that a rank has to say (a phase, a checkpoint).
void HangDetector::reported(Rank rank, const Json& report, Ticks now) {
  State& state = at(rank);
  const auto found = report.find("step");
  const bool has_step = found != report.end() && found->is_number();
  if (has_step && state.step == found->get<double>()) return;
  if (has_step) {
    state.step = found->get<double>();
    state.steps = std::min(state.steps + 1, 2);
  }
  state.progress = now;
}

void HangDetector::exited(Rank rank, Ticks now) {
  at(rank).running = false;
  if (finalizing_) finalizing_ = now;
}

void HangDetector::begin_probing() {
  for (State& state : ranks_) state.probe.reset();
}

void HangDetector::all_probed(Ticks now) {
  if (!all_finalize())
    finalizing_.reset();
  else if (!finalizing_)
    finalizing_ = now;
}

std::vector<std::size_t> HangDetector::running() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (ranks_[i].running) out.push_back(i);
  return out;
}

bool HangDetector::all_finalize() const {
  const auto left = running();
  return !left.empty() && std::all_of(left.begin(), left.end(), [&](std::size_t i) {
    return ranks_[i].probe && ranks_[i].probe->finalizing;
  });
}

bool HangDetector::output_is_late(Ticks now) const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [&](const State& state) { return passed_since(state.output, limits_.no_output, now); });
}

// Of ranks that report their steps each one counts: the others may go on without it for long. Ranks that say
// nothing are judged only where all are silent.
bool HangDetector::progress_is_late(Ticks now) const {
  const auto late = [&](const State& state) {
    return passed_since(state.progress, limits_.no_progress, now);
  };
  return std::all_of(ranks_.begin(), ranks_.end(), late) ||
         std::any_of(ranks_.begin(), ranks_.end(),
                     [&](const State& state) { return state.running && state.steps > 1 && late(state); });
}

std::optional<HangDetector::Kind> HangDetector::passed(Ticks now) const {
  const bool all_started =
      std::none_of(ranks_.begin(), ranks_.end(), [](const State& s) { return s.started == Ticks{}; });
  if (!all_started || running().empty()) return std::nullopt;
  if (finalizing_ && passed_since(*finalizing_, limits_.finalize, now)) return Kind::finalize;
  if (progress_is_late(now)) return Kind::no_progress;
  if (output_is_late(now)) return Kind::no_output;
  return std::nullopt;
}

void HangDetector::skip(Seconds slept) {
  const auto by = std::chrono::duration_cast<Ticks::duration>(slept);
  for (State& state : ranks_) {
    if (state.started == Ticks{}) continue;
    state.output += by;
    state.progress += by;
  }
  if (finalizing_) *finalizing_ += by;
}

bool HangDetector::suspicious(Ticks now) {
  if (last_beat_ != Ticks{} && now - last_beat_ > interval() + std::max(interval(), Seconds(1)))
    skip(now - last_beat_ - interval());
  last_beat_ = now;
  return passed(now).has_value() || finalizing_.has_value();
}

// Stopped before stuck in the kernel before the rank that is behind: by its step, else by when it was heard
// last, among those that are heard at all. In MPI_Finalize it is one that others wait for.
std::size_t HangDetector::suspect(Kind kind) const {
  const auto left = running();
  const auto key = [&](std::size_t i) {
    const State& state = ranks_[i];
    const bool waits = state.probe && state.probe->in_barrier;
    const bool silent = kind == Kind::no_output ? state.prints == 0 : state.steps == 0;
    const Ticks heard = kind == Kind::no_output ? state.output : state.progress;
    return std::tuple(weight(state.probe), waits, silent, state.step.value_or(0), heard);
  };
  return *std::min_element(left.begin(), left.end(),
                           [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
}

std::string HangDetector::reason_of(Kind kind, std::size_t rank, Ticks now) const {
  const State& state = ranks_[rank];
  const auto age = [&](Ticks then) { return format_duration(Seconds(now - then)); };
  std::string out;
  if (kind == Kind::finalize)
    out = fmt::format(
        "hung inside MPI_Finalize: every rank left is in there, and none has moved for {} "
        "(launch.finalize-limit); all work was done before. MPICH 4.0 is known for it where ranks talk over "
        "TCP",
        format_duration(limits_.finalize));
  else if (kind == Kind::no_progress)
    out = fmt::format("hung: no progress for {} (launch.no-progress-limit)", age(state.progress)) +
          (state.step ? fmt::format(", its last step was {}", *state.step) : ", it never reported a step");
  else
    out = fmt::format("hung: no rank printed anything for {} (launch.no-output-limit)",
                      format_duration(limits_.no_output)) +
          (state.prints > 0 ? fmt::format(", this one for {}", age(state.output)) : ", this one never did");
  if (state.probe)
    if (const std::string text = state_text(*state.probe); !text.empty()) out += "; " + text;
  return out;
}

std::optional<HangDetector::Hang> HangDetector::verdict(Ticks now) {
  const auto kind = passed(now);
  if (!kind) return std::nullopt;
  const std::size_t rank = suspect(*kind);
  const auto& probe = ranks_[rank].probe;
  return Hang{Rank(static_cast<int>(rank)), *kind, reason_of(*kind, rank, now), probe && probe->state == 'D'};
}

}  // namespace dlrun::job
