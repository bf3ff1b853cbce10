#include "src/record/time_accounting.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/json.hpp"

namespace dlrun::job {
namespace {

Seconds between(Ticks from, Ticks to) {
  return std::max(Seconds(to - from), Seconds(0));
}

double in_milliseconds(Seconds time) {
  return std::round(time.count() * 1e3) / 1e3;
}

}  // namespace

Json to_json(const TimeParts& parts) {
  Json out{{"start", in_milliseconds(parts.start)},
           {"useful", in_milliseconds(parts.useful)},
           {"checkpoint", in_milliseconds(parts.checkpoint)},
           {"lost", in_milliseconds(parts.lost)},
           {"idle", in_milliseconds(parts.idle)},
           {"total", in_milliseconds(parts.total)}};
  if (parts.staging.count() > 0) out["staging"] = in_milliseconds(parts.staging);
  return out;
}

Result<TimeParts> time_parts_from_json(const Json& json, const std::string& where) {
  TimeParts out;
  for (const auto& [name, part] : {std::pair("start", &out.start), std::pair("useful", &out.useful),
                                   std::pair("checkpoint", &out.checkpoint), std::pair("lost", &out.lost),
                                   std::pair("idle", &out.idle), std::pair("total", &out.total)})
    *part = Seconds(TRY(field<double>(json, name, where)));
  if (json.contains("staging")) out.staging = Seconds(TRY(field<double>(json, "staging", where)));
  return out;
}

TimeParts sum_of(const std::vector<TimeParts>& attempts, Seconds total) {
  TimeParts out;
  for (const TimeParts& one : attempts) {
    out.start += one.start;
    out.staging += one.staging;
    out.useful += one.useful;
    out.checkpoint += one.checkpoint;
    out.lost += one.lost;
  }
  const Seconds known = out.start + out.useful + out.checkpoint + out.lost;
  out.total = std::max(total, known);
  out.idle = out.total - known;
  return out;
}

void TimeAccounting::stepped(Ticks now) {
  if (!first_step_) first_step_ = now;
  last_step_ = now;
}

void TimeAccounting::saved(Ticks now, const std::string& state, Seconds took, Seconds held) {
  saving_ += took;
  took = std::clamp(took, Seconds(0), between(began_, now));  // a report may say anything
  held = std::clamp(held, Seconds(0), took);
  if (checkpoints_.saved(state, held) == CheckpointClock::Report::new_state)
    saved_state_ = now - std::chrono::duration_cast<Ticks::duration>(took);
}

Ticks TimeAccounting::kept_until(End end, Ticks from, Ticks last_exit) const {
  if (end == End::done) return last_exit;
  if (saved_state_) return *saved_state_;
  return end == End::stopped ? last_exit : from;
}

TimeParts TimeAccounting::conclude(End end, Ticks now) const {
  const Ticks last_exit = this->last_exit(now);
  TimeParts out;
  out.total = between(began_, now);
  out.launch = last_start(now) - began_;
  out.ranks = last_exit - last_start(now);
  out.finish = now - last_exit;
  out.saving = saving_;
  const Ticks from = std::min(first_step_.value_or(started_.value_or(now)), now);
  const Ticks to = std::clamp(last_exit, from, now);
  const Ticks kept = std::clamp(kept_until(end, from, to), from, to);
  // A program that reports no steps works to its end; else its last step tells.
  const Ticks worked = end == End::done ? to : std::clamp(last_step_.value_or(to), from, to);
  out.start = between(began_, from);
  out.staging = std::min(staging_, out.start);
  // The last checkpoint of a run that was stopped stands behind the work that it keeps.
  const Seconds inside = end == End::done ? checkpoints_.total() : checkpoints_.before_last();
  out.useful = std::max(between(from, kept) - inside, Seconds(0));
  out.lost = between(kept, worked);
  const Seconds left = out.total - out.start - out.useful - out.lost;
  out.checkpoint = std::clamp(checkpoints_.total(), Seconds(0), std::max(left, Seconds(0)));
  out.idle = std::max(left - out.checkpoint, Seconds(0));
  return out;
}

}  // namespace dlrun::job
