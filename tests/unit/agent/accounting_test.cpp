#include "src/agent/accounting.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::agent;

namespace {

// A folder with a pbs_attach in it that does this.
struct Attach {
  test::Folder folder;
  explicit Attach(const std::string& does) {
    const std::string program = (folder.path / "pbs_attach").string();
    REQUIRE(write_new_file(program, "#!/bin/sh\n" + does + "\n"));
    ::chmod(program.c_str(), 0755);
  }
  Environment job(const std::string& extra = "X=1") const {
    return Environment::from_entries(
        {"PATH=" + folder.path.string() + ":/usr/bin:/bin", "PBS_JOBID=7.srv", extra});
  }
};

}  // namespace

TEST_CASE("a process is made known to the PBS job that it is in, and to no other scheduler") {
  const Attach attach("exit 0");
  CHECK(attach_command(attach.job(), 42) ==
        Argv{(attach.folder.path / "pbs_attach").string(), "-j", "7.srv", "-p", "42"});
  CHECK_FALSE(attach_command(attach.job("SLURM_JOB_ID=3"), 42).has_value());
  CHECK_FALSE(
      attach_command(Environment::from_entries({"PATH=" + attach.folder.path.string()}), 42).has_value());
  CHECK_FALSE(
      attach_command(Environment::from_entries({"PATH=/nowhere", "PBS_JOBID=7.srv"}), 42).has_value());
}

TEST_CASE("PBS's own folder is looked into where PATH does not name it") {
  const Attach attach("exit 0");
  const test::Folder pbs;
  std::filesystem::create_directories(pbs.path / "bin");
  std::filesystem::copy(attach.folder.path / "pbs_attach", pbs.path / "bin");
  const auto command = attach_command(
      Environment::from_entries({"PATH=/usr/bin", "PBS_JOBID=7.srv", "PBS_EXEC=" + pbs.path.string()}), 42);
  REQUIRE(command.has_value());
  CHECK(command->front() == (pbs.path / "bin/pbs_attach").string());
}

TEST_CASE("an attach that fails is said once, and no other is tried") {
  const Attach attach("echo x >>\"${0%/*}/tries\"; exit 3");
  Accounting accounting(attach.job());
  const auto first = accounting.attach(42);
  REQUIRE_FALSE(first.has_value());
  CHECK(first.error().what == "processes are not in PBS's accounting: pbs_attach: exit code 3");
  CHECK(accounting.attach(43).has_value());
  CHECK(read_file(attach.folder.path / "tries").value() == "x\n");
}
