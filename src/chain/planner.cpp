#include "src/chain/planner.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/interval.hpp"
#include "src/base/units.hpp"

namespace dlrun::job {
namespace {

constexpr int kMaxLinks = 100000;
constexpr Seconds kMaxTime{3e9};  // a hundred years: clocks can count it

Ticks after_start(Seconds time) {
  return Ticks{} + std::chrono::duration_cast<Ticks::duration>(time);
}

// The rule by which the links stop, once they have measured the same times.
struct Stop {
  Seconds margin, lead, wanted;  // wanted: the lead that a job of any length would take
};
Stop stop_of(const ChainQuestion& question, Seconds walltime) {
  const Seconds save = question.timing.save.value_or(Seconds(0));
  Deadline deadline(question.policy, after_start(Seconds(0)));
  deadline.on(Deadline::Ends{after_start(walltime)}, after_start(Seconds(0)));
  deadline.on(Deadline::Step{}, after_start(question.timing.start));
  deadline.on(Deadline::Step{}, after_start(question.timing.start + question.timing.step));
  deadline.on(Deadline::Saved{save}, after_start(question.timing.start + question.timing.step));
  const Seconds margin = deadline.margin();
  return {margin, deadline.lead(),
          question.policy.lead.value_or(save * 1.25 + question.timing.step + margin)};
}

bool holds_a_checkpoint(const ChainQuestion& question, Seconds walltime) {
  const Stop stop = stop_of(question, walltime);
  return stop.lead >= stop.wanted && walltime >= question.timing.start + question.timing.step + stop.lead;
}

Seconds whole_minutes(Seconds time) {
  return Seconds(std::ceil(time.count() / 60) * 60);
}

// The shortest walltime, in minutes, that holds a checkpoint.
Seconds least_walltime(const ChainQuestion& question) {
  Seconds out = whole_minutes(question.timing.start + question.timing.step);
  while (!holds_a_checkpoint(question, out)) out += std::max(Seconds(60), whole_minutes(out * 0.01));
  return out;
}

Result<void> check_lead(const ChainQuestion& question) {
  const auto lead = question.policy.lead;
  if (!lead || *lead > *question.timing.save) return {};
  return fail(Error{.kind = ErrorKind::allocation,
                    .what = fmt::format("checkpoint.lead is {}, and a checkpoint takes {}",
                                        format_duration(*lead), format_duration(*question.timing.save)),
                    .where = {},
                    .hint = "remove checkpoint.lead: it is computed from the measured times",
                    .also = {}});
}

Result<void> check_walltime(const ChainQuestion& question) {
  if (!question.walltime || holds_a_checkpoint(question, *question.walltime)) return {};
  const StepTiming& timing = question.timing;
  return fail(Error{
      .kind = ErrorKind::allocation,
      .what = fmt::format("a walltime of {} cannot hold one checkpoint: {} until the first step, {} for "
                          "a step, {} for a checkpoint, and a margin of {}",
                          format_duration(*question.walltime), format_duration(timing.start),
                          format_duration(timing.step), format_duration(*timing.save),
                          format_duration(stop_of(question, *question.walltime).margin)),
      .where = {},
      .hint =
          fmt::format("request {} or more: resources.walltime", format_duration(least_walltime(question))),
      .also = {}});
}

// The time of all steps, of waits for checkpoints, and of failures.
Seconds stepping_time(const ChainQuestion& question, ChainForecast& out, Seconds longest_interval) {
  const Seconds cost = question.timing.held.value_or(*question.timing.save);
  const Seconds least = std::max(*question.timing.save, question.timing.step);  // one is written at a time
  out.interval = question.every, out.rule = ChainForecast::Rule::stated;
  if (question.mtbf) {
    out.young = young_interval(cost, *question.mtbf);
    out.interval = daly_interval(cost, *question.mtbf), out.rule = ChainForecast::Rule::daly;
    if (out.interval < least) out.rule = ChainForecast::Rule::as_often_as_possible;
  }
  out.interval = std::max(out.interval, least);
  const Seconds between = std::min(out.interval, longest_interval);
  if (question.mtbf)
    return out.training * daly_slowdown(between, cost, question.timing.start, *question.mtbf);
  return out.training * (1 + (out.interval < longest_interval ? cost / between : 0));
}

// The time that one link needs, and 10 % more.
Result<Seconds> walltime_for_all(const ChainQuestion& question, ChainForecast& out) {
  const Seconds work = question.timing.start + stepping_time(question, out, out.training);
  if (!(work < kMaxTime))
    return fail(ErrorKind::allocation, "with a failure every {} the training would never finish",
                format_duration(question.mtbf.value_or(kMaxTime)));
  Seconds walltime = whole_minutes(work * 1.1);
  while (walltime - stop_of(question, walltime).lead < work || !holds_a_checkpoint(question, walltime))
    walltime += std::max(Seconds(60), whole_minutes(walltime * 0.01));
  return walltime;
}

}  // namespace

Seconds young_interval(Seconds cost, Seconds mtbf) {
  return Seconds(std::sqrt(2 * cost.count() * mtbf.count()));
}

Seconds daly_interval(Seconds cost, Seconds mtbf) {
  if (cost >= 2 * mtbf) return mtbf;
  const double part = cost / (2 * mtbf);
  return young_interval(cost, mtbf) * (1 + std::sqrt(part) / 3 + part / 9) - cost;
}

double daly_slowdown(Seconds interval, Seconds cost, Seconds restart, Seconds mtbf) {
  return mtbf / interval * std::exp(restart / mtbf) * std::expm1((interval + cost) / mtbf);
}

Result<Seconds> interval_of(const std::string& every, Seconds step, std::int64_t steps_per_epoch) {
  const Interval interval = TRY(parse_interval(every));
  if (interval.unit == Interval::Unit::time) return Seconds(interval.amount);
  if (interval.unit == Interval::Unit::steps) return step * interval.amount;
  if (steps_per_epoch > 0) return step * interval.amount * static_cast<double>(steps_per_epoch);
  return fail(ErrorKind::input, "checkpoint.every is {}, and the measured run reported no epochs", every);
}

Result<ChainForecast> forecast(const ChainQuestion& question) {
  const StepTiming& timing = question.timing;
  if (!timing.save)
    return fail(Error{.kind = ErrorKind::input,
                      .what = "the measured run saved no checkpoint, so the time of one is unknown",
                      .where = {},
                      .hint = "measure a run that saves: set checkpoint.dir, and a short checkpoint.every",
                      .also = {}});
  TRY(check_lead(question));
  TRY(check_walltime(question));
  ChainForecast out;
  out.training = timing.step * static_cast<double>(question.steps);
  out.walltime = question.walltime ? *question.walltime : TRY(walltime_for_all(question, out));
  out.lead = stop_of(question, out.walltime).lead;
  const Seconds of_link = out.walltime - timing.start - out.lead;
  const Seconds stepping = stepping_time(question, out, of_link);
  const double links = std::max(1.0, std::ceil(stepping / of_link - 1e-9));
  if (!(links <= kMaxLinks))
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = fmt::format("a chain of jobs of {} would need more than {}",
                                          format_duration(out.walltime), kMaxLinks),
                      .where = {},
                      .hint = "request a longer walltime: resources.walltime",
                      .also = {}});
  out.links = static_cast<int>(links);
  out.in_jobs = (links - 1) * (out.walltime - out.lead + *timing.save) + timing.start +
                (stepping - (links - 1) * of_link) + *timing.save;
  out.until_done = out.in_jobs + (links - 1) * question.queue;
  out.useful = out.training / out.in_jobs;
  return out;
}

}  // namespace dlrun::job
