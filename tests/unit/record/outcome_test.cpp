#include "src/record/outcome.hpp"

#include <csignal>

#include <doctest/doctest.h>

#include "src/record/exit_code_of.hpp"
#include "src/record/record.hpp"

using namespace dlrun;
using job::Outcome;

namespace {
Outcome ended_with(const std::vector<int>& codes) {
  Outcome outcome;
  for (const int code : codes)
    outcome.ranks.push_back({.status = ExitStatus{.exit_code = code}, .pid = {}, .processors = {}});
  return outcome;
}
}  // namespace

TEST_CASE("the exit code is the first_failure's, and without one what the ranks' ends mean together") {
  CHECK(job::exit_code_of(ended_with({0, 0})) == 0);
  CHECK(job::exit_code_of(ended_with({75, 75})) == 75);
  CHECK(job::exit_code_of(ended_with({0, 75})) == 75);
  Outcome first_failure = ended_with({0, 3});
  first_failure.first_failure = job::FirstFailure{.rank = Rank(1),
                                                  .role = "worker",
                                                  .task_index = 1,
                                                  .host = "c1",
                                                  .code = 3,
                                                  .reason = "exit code 3",
                                                  .last_lines = {},
                                                  .log_path = {}};
  CHECK(job::exit_code_of(first_failure) == 3);
  first_failure.exit_code = 3;
  CHECK(job::reason_of(first_failure) == "worker 1 (rank 1) on c1: exit code 3");
}

TEST_CASE("an interrupted run that saved is 75, one that did not is 128 + signal") {
  Outcome saved = ended_with({75, 75});
  saved.interrupted_by = SIGTERM;
  CHECK(job::exit_code_of(saved) == 75);
  Outcome finished = ended_with({0, 0});
  finished.interrupted_by = SIGTERM;
  CHECK(job::exit_code_of(finished) == 143);  // nothing says that they were done
  finished.result = Json{{"test_accuracy", 0.9}};
  CHECK(job::exit_code_of(finished) == 0);
  Outcome cut = ended_with({143, 75});
  cut.interrupted_by = SIGINT;
  CHECK(job::exit_code_of(cut) == 130);
  Outcome never_started;
  never_started.ranks.resize(2);
  never_started.interrupted_by = SIGINT;
  CHECK(job::exit_code_of(never_started) == 130);
}

namespace {
using job::WalltimeEnd;

Outcome at_walltime(const std::vector<int>& codes, WalltimeEnd::Stage stage) {
  Outcome outcome = ended_with(codes);
  outcome.walltime.stage = stage;
  outcome.walltime.left = Seconds(12);
  outcome.walltime.signal = SIGTERM;
  return outcome;
}

std::string reason_at_end(Outcome outcome) {
  outcome.exit_code = job::exit_code_of(outcome);
  return job::reason_of(outcome);
}
}  // namespace

TEST_CASE("at the walltime 75 is for runs that reported a checkpoint, or whose ranks say so themselves") {
  CHECK(job::exit_code_of(at_walltime({75, 75}, WalltimeEnd::Stage::asked)) == 75);
  Outcome saved = at_walltime({0, 0}, WalltimeEnd::Stage::asked);
  saved.walltime.saved = 40;
  saved.walltime.saved_when_asked = true;
  CHECK(job::exit_code_of(saved) == 75);
  CHECK(reason_at_end(saved) ==
        "asked to stop 12.0s before the end of the walltime: stopped with a valid checkpoint of step 40: run "
        "the same command again to resume");
}

TEST_CASE("an earlier checkpoint is enough to go on from, even where the request was ignored") {
  Outcome outcome = at_walltime({137}, WalltimeEnd::Stage::killed);
  CHECK(job::exit_code_of(outcome) == 137);
  CHECK(
      reason_at_end(outcome) ==
      "asked to stop 12.0s before the end of the walltime, did not, was ended by SIGKILL: no checkpoint was "
      "reported");
  outcome.walltime.saved = 7;
  CHECK(job::exit_code_of(outcome) == 75);
}

TEST_CASE("a file that came after the request is a checkpoint, and the reason names it") {
  Outcome outcome = at_walltime({0, 0}, WalltimeEnd::Stage::asked);
  CHECK(reason_at_end(outcome) ==
        "asked to stop 12.0s before the end of the walltime: the program ended with exit code 0, and no "
        "checkpoint was reported; if it saved, name its files by checkpoint.files, let it exit with 75, or "
        "report it (dlrun_client.py)");
  outcome.walltime.saved = "ckpt-7.pt";
  outcome.walltime.saved_when_asked = true;
  CHECK(reason_at_end(outcome) ==
        "asked to stop 12.0s before the end of the walltime: stopped with a valid checkpoint (ckpt-7.pt): "
        "run the same command again to resume");
  Outcome stopped = ended_with({0, 0});
  stopped.interrupted_by = SIGTERM;
  CHECK(job::exit_code_of(stopped) == 143);
  stopped.walltime.saved = "ckpt-7.pt";
  stopped.walltime.saved_when_asked = true;
  CHECK(job::exit_code_of(stopped) == 75);
}

TEST_CASE(
    "ranks that saved are not said to have ignored the request, and what was never asked is not said to have "
    "been") {
  Outcome leaving = at_walltime({143}, WalltimeEnd::Stage::ended);
  leaving.walltime.saved = 40;
  leaving.walltime.saved_when_asked = true;
  CHECK(reason_at_end(leaving) ==
        "asked to stop 12.0s before the end of the walltime, saved, and was ended by SIGTERM on its way out: "
        "stopped "
        "with a valid checkpoint of step 40: run the same command again to resume");
  Outcome never_asked = at_walltime({137}, WalltimeEnd::Stage::killed);
  never_asked.walltime.left = Seconds(0);
  CHECK(reason_at_end(never_asked) ==
        "the walltime ended before the ranks could be asked to stop, and they were ended by SIGKILL: no "
        "checkpoint "
        "was reported");
}

TEST_CASE("a cancelled job is cancelled by whoever sent the signal, and is 75 only with a checkpoint") {
  Outcome cancelled = ended_with({143, 143});
  cancelled.interrupted_by = SIGTERM;
  cancelled.cancelled_by = "Slurm, job 17";
  CHECK(job::exit_code_of(cancelled) == 143);
  CHECK(reason_at_end(cancelled) == "cancelled (SIGTERM from Slurm, job 17)");
  cancelled.saved_when_stopped = true;
  CHECK(job::exit_code_of(cancelled) == 75);
  CHECK(
      reason_at_end(cancelled) ==
      "cancelled (SIGTERM from Slurm, job 17) with a valid checkpoint: run the same command again to resume");
}

TEST_CASE("a run that finishes while it is asked to stop is done, where that can be known") {
  Outcome outcome = at_walltime({0, 0}, WalltimeEnd::Stage::asked);
  CHECK(job::exit_code_of(outcome) == 143);  // TERM went out: a program may leave with 0 in its middle
  outcome.walltime.signal = 0;
  CHECK(job::exit_code_of(outcome) == 0);
  outcome.walltime.signal = SIGTERM;
  outcome.result = Json{{"test_accuracy", 0.9}};
  CHECK(job::exit_code_of(outcome) == 0);
}
