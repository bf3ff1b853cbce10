// A job's end from Slurm's own library, for machines without its programs (a container, a bare compute node).
// libslurm is loaded when asked for, and only functions that have kept their form over its versions are
// called. It ends the process where it finds no configuration, and it may wait for a busy controller: so this
// is asked in a process of its own.
#pragma once

#include <cstdint>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"

namespace dlrun {

// When Slurm will end the job. Call it in a process that can be lost.
Result<Instant> end_time_by_libslurm(std::uint32_t job_id);

/// An Error where this machine has no libslurm.
Result<void> find_libslurm();

}  // namespace dlrun
