// Outcome: how a run ended, as a value: the exit code, the first failure, how each rank ended, and what the
// program itself reported as its result.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/plan/secret_values.hpp"
#include "src/process/exit_status.hpp"
#include "src/record/step_timing.hpp"
#include "src/record/time_accounting.hpp"

namespace dlrun::job {

// What failed first: a rank, or a node (rank unset).
struct FirstFailure {
  std::optional<Rank> rank;
  std::string role;
  int task_index = 0;
  std::string host;
  int code = 1;
  std::string reason;
  std::string cause = {};  // what its program said of it: "ValueError: label 11 is out of range"
  std::string hint = {};   // the next step, where the end tells one
  std::vector<std::string> last_lines;
  std::string log_path;
  bool work_was_done = false;           // it failed only to end: another attempt would do it all again
  int failed_after = 0;                 // other ranks, before any was told to end ...
  std::string failed_after_cause = {};  // ... and what the first of them said
  // "worker 1 (rank 1) on c1: exit code 3: ValueError: label 11 is out of range"
  std::string text() const;
};

struct RankResult {
  std::optional<ExitStatus> status;  // unset: never started, or lost with its node
  std::optional<pid_t> pid;
  std::vector<int> processors;
  bool told_to_end = false;  // a service after the end of its work
  bool spared = false;       // an elastic job has lost it and went on
  std::string program = {};  // the file that it runs
};

// How the run ended at the end of the allocation.
struct WalltimeEnd {
  enum class Stage { none, asked, ended, killed };  // the last step that was needed: a request, TERM, KILL
  Stage stage = Stage::none;
  std::optional<Instant> end = {};  // of the allocation, as last read; unset: no known limit
  Seconds left{0};                  // at the request
  int signal = 0;                   // sent to ranks that do not use the control channel; 0: none
  Json saved = {};                  // the step of the last reported checkpoint; null: none
  bool saved_when_asked = false;    // whether it was reported after the request
};

// Ranks that an elastic job has lost, or that left as somebody asked, and without which it went on.
struct Loss {
  std::vector<Rank> ranks;
  std::string host, reason;
  bool on_request = false;
  std::optional<Seconds> went_on_after = {};  // the first step of the others; unset: none was complete
  std::optional<Rank> leads = {};             // the first rank that is left
  Ticks at{};                                 // of the loss
};

// Ranks that joined an elastic job.
struct Join {
  std::vector<Rank> ranks;
  std::string host;
  Seconds took{0};                            // from the order to start an agent there
  std::optional<Seconds> went_on_after = {};  // the first step with them; unset: none was complete
  Ticks at{};                                 // when they became members
};
Json to_json(const std::vector<Join>& joins);

/// As the record and the status have them.
Json to_json(const std::vector<Loss>& losses);

struct Outcome {
  int exit_code = 0;
  std::optional<std::string> error;  // the run ended before its ranks were watched: no agent, a failed check
  std::optional<Error> unreachable;  // not every node got an agent: no rank was started
  std::vector<std::string> bad_hosts;  // nodes that were lost or not reached
  std::optional<FirstFailure> first_failure;
  std::optional<int> interrupted_by;        // a signal that asked the run to stop
  std::optional<std::string> cancelled_by;  // "Slurm, job 17", if that sent the signal
  bool saved_when_stopped = false;          // a checkpoint was reported after the signal
  std::vector<RankResult> ranks;            // by rank
  std::vector<Loss> losses = {};            // in their order
  std::vector<Join> joins = {};             // in their order
  std::size_t strays = 0;                   // stray processes that the agents ended
  int agents_unverified = 0;                // nodes that could not confirm that no process is left
  Json result;  // the program's own {"test_accuracy": ..}; null: none was reported
  Json last_progress;
  Json stragglers = Json::array();   // slow ranks, each as it was at its slowest
  Json energy;                       // joules, or why they are not known (energy.hpp)
  Json provenance = Json::object();  // what the agents found out (found_provenance.hpp)
  WalltimeEnd walltime;
  TimeParts time;                                  // the time accounting
  std::optional<std::uint64_t> staged_bytes = {};  // that the nodes lacked, where the job stages files
  std::optional<StepTiming> timing;
};

/// Takes the values of secrets out of the texts of ranks and agents.
void hide(const plan::SecretValues& secrets, Outcome& outcome);
/// Takes them out of an error, which may show output of a program.
Error hidden(const plan::SecretValues& secrets, Error error);

}  // namespace dlrun::job
