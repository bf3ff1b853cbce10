#include "src/job/outcome.hpp"

#include <csignal>

#include <doctest/doctest.h>

#include "src/job/record.hpp"
#include "src/job/verdict.hpp"

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

TEST_CASE("the exit code is the culprit's, and without one what the ranks' ends mean together") {
  CHECK(job::exit_code_of(ended_with({0, 0})) == 0);
  CHECK(job::exit_code_of(ended_with({75, 75})) == 75);
  CHECK(job::exit_code_of(ended_with({0, 75})) == 75);
  Outcome culprit = ended_with({0, 3});
  culprit.culprit = job::Culprit{.rank = Rank(1),
                                 .role = "worker",
                                 .task_index = 1,
                                 .host = "c1",
                                 .code = 3,
                                 .reason = "exit code 3",
                                 .last_lines = {},
                                 .log_path = {}};
  CHECK(job::exit_code_of(culprit) == 3);
  culprit.exit_code = 3;
  CHECK(job::reason_of(culprit) == "worker 1 (rank 1) on c1: exit code 3");
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
