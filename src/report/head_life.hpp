// Whether the heads of runs live, as seen from any machine that sees their directories. On the head's own
// machine the kernel knows. Elsewhere its status.json does: one that was just written, or that is written
// again while we watch, has a head. Clocks of two machines may differ, so an old file alone proves nothing;
// all runs in doubt are watched together, for a few seconds.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "src/base/clock.hpp"
#include "src/record/head_status.hpp"

namespace dlrun::report {

struct HeadSign {
  std::filesystem::path run_directory;
  job::HeadStatus status;
};

/// Of each: alive or ended; unknown: nothing was heard of it while it was watched.
std::vector<Life> lives_of(const std::vector<HeadSign>& heads, Instant now,
                           const std::function<void(Seconds)>& pause);

/// An Error where the living head of a run does not work in this directory, which was moved or is a copy:
/// what is written there nobody reads. `planned` is the directory by its head's name of it; where that is
/// another one here, or none, the head must write its status in ours while we watch.
Result<void> check_head_works_in(const HeadSign& head, const std::filesystem::path& planned,
                                 const std::function<void(Seconds)>& pause);

/// Pure: what can be said at once; unknown: it must be watched. `age` is the age of its status by our clock.
Life first_judgement(Life by_kernel, Seconds age);

}  // namespace dlrun::report
