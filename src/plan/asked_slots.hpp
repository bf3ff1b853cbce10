// Slots that a user asked for (`--ntasks-per-node`, mpiprocs, a:4) are ranks: they give tasks-per-node where
// the job says neither that nor GPUs, and can differ from node to node. Slots that a scheduler merely counts
// (cores) say nothing here, and neither does one slot per node, which every scheduler gives unasked. Where a
// job has roles (roles.hpp), slots are those of all roles together (as `submit` asks for them), and say
// nothing of one.
#pragma once

#include <vector>

#include "schedulers/scheduler.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::plan {

/// Whether the user requested the slots of these nodes; if not, they are a default.
bool slots_were_asked_for(const std::vector<AllocatedNode>& nodes);

/// Whether the number of tasks per node follows from the slots.
bool leaves_tasks_to_slots(const Resources& resources);

// A job that asks for more tasks per node than slots were asked for contradicts itself; fewer are fine. Where
// the scheduler divided a total, only the total counts.
Result<void> check_asked_slots(const JobSpec& spec, const std::vector<AllocatedNode>& nodes,
                               SlotDivision division);

}  // namespace dlrun::plan
