// The folder of a chain: its ledger chain.json, its leases, and the request to stop. Only the holder of the
// newest lease (src/base/lease.hpp) writes the ledger: of two links that a scheduler starts at the same time,
// or of one that it starts twice, one gets it; and a link that was thought dead and comes back is told so.
#pragma once

#include <filesystem>

#include "schedulers/submission.hpp"
#include "src/base/lease.hpp"
#include "src/chain/chain.hpp"

namespace dlrun::job {

class ChainFolder {
 public:
  explicit ChainFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& path() const { return folder_; }
  Result<Chain> read() const;
  Result<void> create(const Chain& chain) const;
  // An Error (lost) where another link has taken over since.
  Result<void> write(const Chain& chain, const Lease& mine) const;

  LeaseFolder leases() const { return LeaseFolder(folder_ / "leases"); }

  Result<void> write_first_job(const std::string& job_id) const;
  std::string first_job() const;  // empty: not told
  // Pre-submitted jobs: written by who submits, while the first link may run already.
  Result<void> write_presubmitted_jobs(const std::vector<std::string>& job_ids) const;
  std::vector<std::string> presubmitted_jobs() const;
  StopRequest stop_requested() const;
  Result<void> request_stop() const;

 private:
  std::filesystem::path folder_;
};

// The pending jobs of the chain, the next one first.
std::vector<std::string> waiting_jobs(const ChainFolder& folder, const Chain& chain);

// Takes the lease unless the owner of the newest one still runs. The scheduler is asked for the state of
// another job; a second start of the same job waits until the first has ended or is silent for too long.
Result<Lease> take_over(const ChainFolder& folder, const Submission& scheduler, const LeaseOwner& owner,
                        const Environment& environment, const CommandRunner& commands,
                        const LeaseTimes& times = {});

// The checkpoints of a link: the files of the pattern, else the content of the folder.
struct CheckpointPlace {
  std::string folder, files = {};
};
// A text that changes when a checkpoint is saved; empty if there is none.
std::string checkpoint_mark(const CheckpointPlace& place);
// Refuses a job id of the folder that is not valid for the scheduler: ids become arguments of commands.
Result<void> check_job_ids(const Submission& scheduler, const ChainFolder& folder, const Chain& chain);

// All chains below runs/ of the folder, the newest first.
std::vector<std::filesystem::path> all_chains(const std::filesystem::path& here);
// The newest chain below runs/ of the folder.
Result<std::filesystem::path> newest_chain(const std::filesystem::path& here);

}  // namespace dlrun::job
