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
  bool told_to_end = false;  // a service, whose work was done
  std::string program = {};  // the file that it runs
};

// What the end of the allocation made of the run.
struct WalltimeEnd {
  enum class Stage { none, asked, ended, killed };  // how far it had to go: a request, TERM, KILL
  Stage stage = Stage::none;
  std::optional<Instant> end = {};  // of the allocation, as last read; unset: no limit is known
  Seconds left{0};                  // when it was asked
  int signal = 0;                   // that asked the ranks which are not on the control channel; 0: none
  Json saved = {};                  // step of the last checkpoint that was reported; null: none was
  bool saved_when_asked = false;    // and it came after the request
};

struct Outcome {
  int exit_code = 0;
  std::optional<std::string> error;    // it ended before its ranks were watched: no agent, a failed check
  std::optional<Error> unreachable;    // not every node got an agent: no rank was started
  std::vector<std::string> bad_hosts;  // nodes that were lost or not reached
  std::optional<FirstFailure> first_failure;
  std::optional<int> interrupted_by;        // a signal that asked the run to stop
  std::optional<std::string> cancelled_by;  // "Slurm, job 17", where that sent the signal
  bool saved_when_stopped = false;          // a checkpoint was reported after the signal
  std::vector<RankResult> ranks;            // by rank
  std::size_t strays = 0;                   // processes that ranks left behind and the agents ended
  int agents_unverified = 0;                // nodes that could not confirm that nothing is left
  Json result;  // the program's own {"test_accuracy": ..}; null where it reported none
  Json last_progress;
  WalltimeEnd walltime;
  TimeParts time;  // where it went
  std::optional<StepTiming> timing;
};

/// Takes the values of secrets out of what ranks and agents said.
void hide(const plan::SecretValues& secrets, Outcome& outcome);
/// The same of an error, which may show what a program printed.
Error hidden(const plan::SecretValues& secrets, Error error);

}  // namespace dlrun::job
