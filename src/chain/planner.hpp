// The planner of chains: from the times that an earlier run measured to the number of links, the checkpoint
// interval and the time of completion. Pure. It plans with the rule by which the links will save and stop
// (deadline.hpp), and refuses a walltime that cannot hold one checkpoint rather than plan a chain that makes
// no progress.
//
// The checkpoint interval, where failures are to be expected, is Daly's: J. T. Daly, "A higher order estimate
// of the optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22 (2006)
// 303-312; its first order is J. W. Young, "A first order approximation to the optimum checkpoint interval",
// Communications of the ACM 17 (1974) 530-531.
#pragma once

#include <string>

#include "src/base/result.hpp"
#include "src/record/step_timing.hpp"
#include "src/run/deadline.hpp"

namespace dlrun::job {

// `cost`: how long training stands still for one; `mtbf`: mean time between failures of the whole job.
Seconds young_interval(Seconds cost, Seconds mtbf);
Seconds daly_interval(Seconds cost, Seconds mtbf);
// Daly's expected time of work that takes `work` without failures, divided by `work`.
double daly_slowdown(Seconds interval, Seconds cost, Seconds restart, Seconds mtbf);

// checkpoint.every, as time: "10min", "200steps", "1epoch".
Result<Seconds> interval_of(const std::string& every, Seconds step, std::int64_t steps_per_epoch);

struct ChainQuestion {
  StepTiming timing;
  std::int64_t steps = 0;           // of the whole training
  std::optional<Seconds> walltime;  // of a link; unset: as much as one link needs
  Deadline::Policy policy;
  Seconds every{600};           // checkpoint.every; used if no failures are expected
  std::optional<Seconds> mtbf;  // of all nodes together
  Seconds queue{0};             // between two links
};

struct ChainForecast {
  int links = 1;
  Seconds walltime{0};
  Seconds interval{0};  // between two checkpoints
  enum class Rule { stated, daly, as_often_as_possible };
  Rule rule = Rule::stated;
  std::optional<Seconds> young;  // the first order, to compare
  Seconds lead{0};               // how long before its end a link is asked to save
  Seconds training{0};           // steps alone
  Seconds in_jobs{0};            // in all links
  Seconds until_done{0};         // the queue included
  double useful = 0;             // share of the time in jobs
};

// Refuses a walltime in which a link cannot save once: an Error (allocation).
Result<ChainForecast> forecast(const ChainQuestion& question);

}  // namespace dlrun::job
