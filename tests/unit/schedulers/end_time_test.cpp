#include <doctest/doctest.h>

#include "schedulers/scheduler.hpp"

using namespace dlrun;

namespace {

Result<std::optional<Instant>> answer(std::string_view scheduler, std::size_t which,
                                      const std::string& text) {
  const auto questions = end_questions(scheduler, "7");
  REQUIRE(which < questions.size());
  return questions[which].read(text);
}

}  // namespace

TEST_CASE("Slurm's limit as scontrol tells it now") {
  const auto end = answer("slurm", 0,
                          "JobId=7 JobName=x\n   JobState=RUNNING\n   RunTime=00:00:10 TimeLimit=00:02:00\n"
                          "   StartTime=2026-11-28T08:00:00 EndTime=2026-11-28T08:02:00 Deadline=N/A\n");
  REQUIRE(end);
  CHECK(format_utc(end->value()) == "2026-11-28T08:02:00Z");
}

TEST_CASE("a limit that was lifted is no end") {
  const auto end = answer("slurm", 0,
                          "JobId=7 JobName=x\n   RunTime=00:00:10 TimeLimit=UNLIMITED\n"
                          "   StartTime=2026-11-28T08:00:00 EndTime=Unknown\n");
  REQUIRE(end);
  CHECK(!end->has_value());
}

TEST_CASE("an end that is not reported is an error, never 'no limit'") {
  CHECK(!answer("slurm", 0, ""));
  CHECK(!answer("slurm", 0, "JobId=8 JobName=x\n   TimeLimit=UNLIMITED EndTime=Unknown\n"));
  CHECK(!answer("slurm", 1, "soon\n"));
  CHECK(!answer("pbs", 0, "qstat: Unknown Job Id 7\n"));
  CHECK(!answer("flux", 0, "{}"));
}

TEST_CASE("libslurm's answer is a second since 1970") {
  CHECK(answer("slurm", 1, "1795852800\n")->value() == Instant(std::chrono::seconds(1795852800)));
}

TEST_CASE("schedulers that tell no end are not asked") {
  CHECK(end_questions("local", "7").empty());
  CHECK(end_questions("gridengine", "7").empty());
}

TEST_CASE("PBS's count of used walltime tells what is left after a suspension") {
  const auto question = end_questions("pbs", "7").front();
  const std::string limit = "\"Resource_List\": {\"walltime\": \"00:01:30\"}";
  const std::string job = "{\"Jobs\": {\"7\": {\"stime\": \"Sat Nov 28 08:00:00 2026\", " + limit +
                          ", \"resources_used\": {\"walltime\": \"00:00:17\"}}}}";
  CHECK(format_utc(question.read(job).value().value()) == "2026-11-28T08:01:30Z");
  CHECK(question.left(job) == Seconds(73));
  CHECK_FALSE(question.left("{\"Jobs\": {\"7\": {" + limit + "}}}").has_value());
  CHECK_FALSE(end_questions("slurm", "7").front().left);  // it moves the end itself
}
