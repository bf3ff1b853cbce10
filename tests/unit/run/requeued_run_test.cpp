#include "src/run/requeued_run.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::job;
namespace fs = std::filesystem;

namespace {
Allocation batch_job_of(const std::string& scheduler) {
  Allocation out;
  out.scheduler = scheduler;
  out.job_id = "7";
  return out;
}
Environment with_variable(const char* name, const char* value) {
  Environment out;
  out.set(name, value);
  return out;
}
}  // namespace

TEST_CASE("each start of a batch job is told from the others") {
  const auto start = [](const char* scheduler, const Environment& environment, const char* session) {
    const auto found = job_start(batch_job_of(scheduler), environment, session);
    return found ? found->start : "none";
  };
  CHECK(start("slurm", {}, "boot:1:2") == "0");
  CHECK(start("slurm", with_variable("SLURM_RESTART_COUNT", "2"), "boot:1:2") == "2");
  CHECK(start("pbs", with_variable("PBS_ENVIRONMENT", "PBS_BATCH"), "boot:1:2") == "boot:1:2");
  CHECK(start("pbs", with_variable("PBS_ENVIRONMENT", "PBS_INTERACTIVE"), "boot:1:2") == "none");
  CHECK(start("torque", {}, "boot:1:2") == "none");
  CHECK(start("gridengine", with_variable("ENVIRONMENT", "BATCH"), "boot:1:2") == "boot:1:2");
  CHECK(start("lsf", {}, "boot:1:2") == "boot:1:2");
  CHECK(start("lsf", with_variable("LSB_INTERACTIVE", "Y"), "boot:1:2") == "none");
  CHECK(start("local", {}, "boot:1:2") == "none");
  CHECK_FALSE(job_start({}, {}, "boot:1:2"));
}

TEST_CASE("a process that leads its session finds itself as the leader, the same at each call") {
  // In a session of its own: the one that the test was started in may have a leader out of sight.
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const std::optional<std::string> own = session_leader();
    const bool found = own && std::count(own->begin(), own->end(), ':') == 2 &&
                       own->find(fmt::format(":{}:", ::getpid())) != std::string::npos &&
                       session_leader() == own;
    ::_exit(found ? 0 : 1);
  }
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("only another start of the same job may go on in a run directory") {
  const test::Folder folder;
  CHECK_FALSE(is_of_earlier_start(folder.path, {"slurm", "7", "1"}));
  REQUIRE(write_job_start(folder.path, {"slurm", "7", "0"}));
  CHECK(is_of_earlier_start(folder.path, {"slurm", "7", "1"}));
  CHECK_FALSE(is_of_earlier_start(folder.path, {"slurm", "7", "0"}));
  CHECK_FALSE(is_of_earlier_start(folder.path, {"slurm", "8", "1"}));
  CHECK_FALSE(is_of_earlier_start(folder.path, {"pbs", "7", "1"}));
  folder.write("job-start.json", "{");
  CHECK_FALSE(is_of_earlier_start(folder.path, {"slurm", "7", "1"}));
}

TEST_CASE("a run directory whose owner lives is not taken") {
  const test::Folder folder;
  const JobStart now{"slurm", "7", "1"};
  int waited = 0;
  const auto take = [&] {
    return take_run_directory(folder.path, now, [&](const std::string&, Seconds) { ++waited; },
                              {.wait = Seconds(0.2)});
  };
  {
    const auto first = take();
    REQUIRE(first);
    const auto second = take();
    REQUIRE_FALSE(second);
    CHECK(second.error().kind == ErrorKind::io);
    CHECK(second.error().text().find("is in use by job 7") != std::string::npos);
    CHECK(waited == 1);
  }
  CHECK(take());
}

TEST_CASE("what an earlier start left is kept, and what is the program's stays in its place") {
  const test::Folder folder;
  const fs::path& run = folder.path;
  const auto start = [&](const std::string& number) {
    folder.write("record.json", number);
    folder.write("logs/0000-worker-0.log", number);
    folder.write("hosts-request.json", number);
    REQUIRE(write_job_start(run, {"slurm", "7", number}));
  };
  folder.write("ckpt/step-7", "weights");
  start("0");
  CHECK(keep_earlier_start(run).value() == run / "restarts" / "1");
  CHECK_FALSE(fs::exists(run / "record.json"));
  CHECK_FALSE(fs::exists(run / "logs"));
  CHECK_FALSE(fs::exists(run / "hosts-request.json"));  // which the next start would do again
  start("1");
  CHECK(keep_earlier_start(run).value() == run / "restarts" / "2");
  CHECK(read_file(run / "restarts/1/record.json").value() == "0");
  CHECK(read_file(run / "restarts/2/logs/0000-worker-0.log").value() == "1");
  CHECK(read_file(run / "ckpt/step-7").value() == "weights");
}
