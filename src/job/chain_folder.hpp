// The folder of a chain: its ledger chain.json, its leases, and the wish to stop. Only the holder of the
// newest lease writes the ledger. A lease is a file with a number that is made once: of two links that a
// scheduler starts at the same time, one gets the next number and the other does not; and a link that was
// thought dead and comes back sees that its number is not the newest any more.
#pragma once

#include <filesystem>

#include "schedulers/submission.hpp"
#include "src/job/chain.hpp"

namespace dlrun::job {

struct Lease {
  int number = 0;  // 0: nobody ever had one
  std::string job_id;
  bool released = false;
};

// In a lease, in the place of a job: dlrun chain stop, which closes the ledger.
inline constexpr const char* kStopping = "dlrun chain stop";

class ChainFolder {
 public:
  explicit ChainFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& path() const { return folder_; }
  Result<Chain> read() const;
  Result<void> create(const Chain& chain) const;
  // An Error (lost) where another link has taken over since.
  Result<void> write(const Chain& chain, const Lease& mine) const;

  Result<Lease> newest_lease() const;
  // The next number. An Error (unavailable) where another one got it.
  Result<Lease> take_lease(const Lease& newest, const std::string& job_id) const;
  Result<void> release(const Lease& mine) const;

  Result<void> write_first_job(const std::string& job_id) const;
  std::string first_job() const;  // empty: not told
  // Jobs that were handed in ahead: written by who submits, while the first link may run already.
  Result<void> write_jobs_ahead(const std::vector<std::string>& job_ids) const;
  std::vector<std::string> jobs_ahead() const;
  StopWish stop_wish() const;
  Result<void> wish_stop() const;

 private:
  std::filesystem::path folder_;
};

// Jobs of the chain that wait for their turn, the next one first.
std::vector<std::string> waiting_jobs(const ChainFolder& folder, const Chain& chain);

// Takes the lease for `job_id` unless the holder of the newest one is still running: the scheduler is asked.
Result<Lease> take_over(const ChainFolder& folder, const Submission& scheduler, const std::string& job_id,
                        const Environment& environment, const CommandRunner& commands);

// Where a link's checkpoints are: the files of the pattern, else what is in the folder.
struct CheckpointPlace {
  std::string folder, files = {};
};
// Changes when a checkpoint is saved; empty where there is none.
std::string checkpoint_mark(const CheckpointPlace& place);
// An Error where an id that was read from the folder is none of the scheduler's: it goes into commands.
Result<void> check_job_ids(const Submission& scheduler, const ChainFolder& folder, const Chain& chain);

// All chains below runs/ of the folder, the newest first.
std::vector<std::filesystem::path> all_chains(const std::filesystem::path& here);
// The newest chain below runs/ of the folder.
Result<std::filesystem::path> newest_chain(const std::filesystem::path& here);

}  // namespace dlrun::job
