// Submitting a job: from what was typed to a script of a few lines for the scheduler, in which dlrun runs,
// and its submission. The job is planned first on hypothetical nodes, so that what can never run is refused
// here and not after hours in a queue. The script supervises nothing: that is dlrun's work.
#pragma once

#include "schedulers/submission.hpp"
#include "src/chain/chain.hpp"
#include "src/run/prepare.hpp"

namespace dlrun::job {

struct ChainPlan {
  int max_links = 1, retries = 0;
  ChainMode mode = ChainMode::resubmit;
};

// What a submission is a chain of; of an array of jobs, the chain of one element.
struct ChainAsk {
  int links = 1;
  std::optional<int> element = std::nullopt;
};

struct SubmissionPlan {
  plan::JobSpec spec;
  std::size_t ranks = 0;      // on the most nodes of a range
  std::size_t min_ranks = 0;  // on the fewest; 0: no range
  std::unique_ptr<Submission> scheduler;
  std::string name;
  std::string folder;  // gets the script and what the job prints; of a chain also its ledger
  std::string script_path, script;
  std::string frozen_job_path, frozen_job;  // what the script runs: see src/plan/frozen_job.hpp
  std::vector<Directive> directives;
  std::string after = {};          // the job that must have ended first; empty: none
  Argv command;                    // that submits the script
  std::vector<HostName> excluded;  // nodes that the job is kept off
  std::optional<ChainPlan> chain;
  std::vector<int>
      array;  // of a chain: the elements that its script asks for; each must be a chain of its own
};

// Pure but for the files it reads and, for the choice of the scheduler, the programs it asks. `flags` are
// flags of `dlrun run` inside the job beside the frozen job; `folder` is the submission's. With `chain`, the
// job is the first link of a chain of that many at most; an Error where the scheduler cannot have it in the
// job's mode. Where the job is an array, whose elements would share one ledger, the plan tells the elements
// in `array` and is not to be submitted; asked again for an element, it is a job alone, which is told its
// index like one of an array.
Result<SubmissionPlan> plan_submission(const Request& request, const Argv& flags,
                                       const std::filesystem::path& folder, const CommandRunner& commands,
                                       std::optional<ChainAsk> chain = std::nullopt);
// 0600: whoever may read the job file may not be whoever may read what flags added to it.
Result<void> write_frozen_job(const std::filesystem::path& path, const std::string& text);
// runs/submit-NAME-ID below the user's folder.
std::filesystem::path new_submission_folder(const std::filesystem::path& here, const plan::JobSpec& spec,
                                            Instant now);
// Of one element of an array: runs/submit-NAME-ID.7.
std::filesystem::path element_folder(const std::filesystem::path& folder, int element);

// Writes folder and script and submits it; what was refused leaves no folder behind. The job's id.
// Where the submission is the first link of a chain, its ledger is there before the job can start.
Result<std::string> submit(const SubmissionPlan& plan, const Environment& environment,
                           const CommandRunner& commands);

}  // namespace dlrun::job
