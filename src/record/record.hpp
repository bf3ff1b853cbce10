// record.json: the provenance of a run, written when it ends: what ran, from which sources and versions, how
// each rank ended, what failed first, where the time went. Its schema is dlrun.record/1.
#pragma once

#include "schedulers/allocation.hpp"
#include "src/base/environment.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"
#include "src/record/outcome.hpp"

namespace dlrun::job {

// What ran, where, and by which adapter (its file).
struct RecordedJob {
  const plan::Plan& plan;
  const plan::JobSpec& spec;
  const Allocation& allocation;
  std::string adapter_source;
};

struct RunTimes {
  Instant began, ended;
  TimeParts parts;
};

/// Facts of this machine and its tools that a reader will want in a year: versions, the git state of the
/// job's folder, its container; with them what the agents have found of the nodes and the program.
Json provenance(const RecordedJob& job, const Environment& environment, const Json& found);

// One attempt of a run: its plan and how it ended.
Json attempt_record(const plan::Plan& plan, const Outcome& outcome);
// `outcome` is the last attempt's, `attempts` a list of attempt_record().
Json make_record(const RecordedJob& job, const Outcome& outcome, const RunTimes& times, Json attempts,
                 Json provenance);

// One sentence about the end: "done", "worker 1 (rank 1) on c1: exit code 3", "stopped with a checkpoint:
// ...".
std::string reason_of(const Outcome& outcome);

}  // namespace dlrun::job
