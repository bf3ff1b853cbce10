// RunView: how one run, submission or chain stands now, as everything that `dlrun list` and `dlrun status`
// tell of it. Made from folders and, where no head can tell, from the scheduler. It changes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/report/chain_view.hpp"
#include "src/report/find_run.hpp"
#include "src/report/run_state.hpp"
#include "src/report/scheduler_job.hpp"

namespace dlrun::report {

struct HostView {
  std::string host;
  std::size_t ranks = 0;
  std::optional<job::NodeUsage> usage = {};  // while the run is on
};

struct RunView {
  RunEntry entry;                 // what was asked for
  std::filesystem::path run;      // the run directory that tells of it; empty: there is none yet
  std::filesystem::path planned;  // the same by its head's name of it, with Depth::whole
  std::string name;
  Standing standing;
  std::string framework, scheduler;
  std::optional<std::string> scheduler_job;
  std::optional<Instant> began, ended;
  std::size_t nodes = 0, ranks = 0;
  int attempt = 1;
  std::optional<job::HeadStatus> head;  // the last that it said
  Json progress, result;                // null: none
  SchedulerJob job;                     // of one that waits
  std::optional<ChainView> chain;
  std::vector<HostView> hosts;  // only with Depth::whole
  // Tasks by role, in the order of the ranks; empty where there is one role.
  std::vector<std::pair<std::string, std::size_t>> roles;  // only with Depth::whole
  std::vector<std::string> problems;
};

/// Whether a run is over for now: its job waits for another start, which goes on in the same directory.
bool waits_again(const RunView& view);

/// In the order of the entries. An entry that cannot be read is lost, with the reason.
std::vector<RunView> views_of(const std::vector<RunEntry>& entries, Depth depth, const World& world);
RunView view_of(const RunEntry& entry, const World& world);

/// A submission whose job has begun stands for its run; all others for themselves.
RunEntry resolved(const RunEntry& entry);
/// The same for a list: each run once.
std::vector<RunEntry> resolved(const std::vector<RunEntry>& entries);

/// The document of dlrun status --json: dlrun.status/1.
Json to_json(const RunView& view, Instant now);

}  // namespace dlrun::report
