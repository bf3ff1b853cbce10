// ChainView: a chain as it is shown: its ledger, checked against the scheduler (one whose jobs are gone and
// wrote no end down stands still for ever), what waits, where its time went and how long it will take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/chain/folder.hpp"
#include "src/chain/times.hpp"
#include "src/report/scheduler_job.hpp"

namespace dlrun::report {

struct ChainView {
  job::Chain chain;
  std::vector<std::string> waiting;
  std::string held;       // why the next job will not start by itself; empty: it will
  QueuePlace place = {};  // of the next job, while none runs
  job::TimeParts time;
  std::optional<job::TimeLeft> left;
};

Result<ChainView> chain_view_of(const job::ChainFolder& folder, const World& world);
/// Of a chain whose link is over and wrote no end: the ledger says `running` until the next link begins. It
/// becomes queued where the link's job waits for another start, or is gone and the next one waits.
void find_waiting(ChainView& view, const World& world);
/// The ledger; where the scheduler knows none of the chain's jobs, nobody can write it any more: stopped.
Result<job::Chain> read_chain(const job::ChainFolder& folder, const World& world);
/// Whether the scheduler knows none of these jobs.
bool all_gone(const std::vector<std::string>& jobs, const Submission& scheduler, const World& world);

std::string eta_text(const job::TimeLeft& left, Instant now);
/// What is to be done while there is time; empty: nothing.
std::string too_few_jobs(const ChainView& view);
/// The document of dlrun chain status --json.
Json to_json(const ChainView& view, const job::ChainFolder& folder, Instant now);

}  // namespace dlrun::report
