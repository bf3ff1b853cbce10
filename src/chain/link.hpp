// One link of a chain, from inside its job: it takes the lease, sees to its successor, and when its run is
// over writes down what came of it and cancels what still waits where the chain is over. Where each link
// submits the next, it does so at its start and not at its end: a job that is killed, or whose node dies,
// still has a successor. A job that is requeued has none then, but the scheduler's own requeueing.
#pragma once

#include "src/chain/folder.hpp"
#include "src/run/prepare.hpp"
#include "src/run/run_job.hpp"

namespace dlrun::job {

class ChainLink {
 public:
  struct Context {
    const Environment& environment;
    const CommandRunner& commands;
    const Clock& clock;
    const plan::JobSpec& spec;
    std::function<void(const std::string&)> note;
  };
  // A link without work, because the chain has ended, has no number.
  static Result<ChainLink> begin(const std::filesystem::path& folder, CheckpointPlace checkpoints,
                                 Context context);
  bool has_work() const { return lease_.has_value(); }
  std::string idle_reason() const { return chain_.reason; }
  std::string run_directory() const { return chain_.links.back().run_directory; }

  // After the run, which may not have come as far as a record.
  Result<void> end(const Result<RunReport>& report);

 private:
  ChainLink(ChainFolder folder, CheckpointPlace checkpoints, Context context)
      : folder_(std::move(folder)), checkpoints_(std::move(checkpoints)), context_(std::move(context)) {}
  Result<void> start();
  Result<Lease> take() const;
  void account_for_lost();
  Result<void> submit_next();
  Result<void> see_to_successor();
  Result<void> requeue();
  void cancel_waiting();
  std::vector<HostName> excluded() const;
  void exclude_from_waiting();
  Result<void> check_waiting();
  bool is_lost(const std::string& job) const;
  Environment submit_environment() const;

  ChainFolder folder_;
  CheckpointPlace checkpoints_;
  Context context_;
  std::unique_ptr<Submission> scheduler_;
  std::string job_id_;
  Chain chain_;
  std::optional<Lease> lease_;
  Instant began_;
  Ticks began_ticks_;
};

}  // namespace dlrun::job
