#include "src/launch/stage.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/process/command.hpp"

using namespace dlrun;
using namespace dlrun::launch;
namespace fs = std::filesystem;

namespace {

// An installation whose dlrun says how it was started, and a TMPDIR that tells what is left of copies.
struct StagingHead {
  fs::path root = fs::temp_directory_path() / fmt::format("stage test {}", ::getpid());
  Installation own{.bin = root / "head" / "bin", .data = {}, .plugins = root / "head" / "lib" / "dlrun"};
  std::string archive = (root / "copy.tar.gz").string();
  Environment environment = Environment::of_this_process();

  explicit StagingHead(const std::string& dlrun) {
    for (const fs::path& folder : {own.bin, own.plugins, root / "tmp"}) fs::create_directories(folder);
    write(own.agent(), dlrun);
    write(own.plugins / "libdlrun-pmix.so", "a plug-in");
    environment.set("TMPDIR", (root / "tmp").string());
  }
  ~StagingHead() { fs::remove_all(root); }

  static void write(const fs::path& path, const std::string& text) {
    REQUIRE(write_new_file(path, text));
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
  }
  void pack(plan::MpiProtocol mpi = plan::MpiProtocol::pmix) const {
    plan::Plan plan;
    plan.mpi = mpi;
    REQUIRE(write_archive(files_to_stage(plan, own), archive, environment));
  }
  CommandOutput run(const std::string& program) const {
    return run_command({.argv = {"/bin/sh", "-c", stage_script(program, archive), "sh", "--port", "1 2"},
                        .environment = environment})
        .value();
  }
  bool nothing_left() const { return fs::is_empty(root / "tmp"); }
};

constexpr const char* kSays =
    "#!/bin/sh\necho $# \"$4\"; ls -l \"$0\" | cut -c1-10; cat \"$2/lib/dlrun/libdlrun-pmix.so\"; "
    "exit 7\n";

}  // namespace

TEST_CASE("a node without dlrun runs a copy with its plug-ins, and nothing is left of it") {
  const StagingHead head(kSays);
  head.pack();
  const CommandOutput output = head.run("/nowhere/dlrun-agent");
  CHECK(output.err.empty());
  CHECK(output.out == "4 1 2\n-rwxr-xr-x\na plug-in");
  CHECK(output.status.exit_code == 7);
  CHECK(head.nothing_left());
}

TEST_CASE("a node with dlrun uses its own") {
  const StagingHead head("#!/bin/sh\necho the copy\n");
  StagingHead::write(head.root / "dl run", "#!/bin/sh\necho its own: \"$@\"\n");
  const CommandOutput output = head.run((head.root / "dl run").string());
  CHECK(output.out == "its own: --port 1 2\n");
  CHECK(head.nothing_left());
}

TEST_CASE("a copy that is no archive is an end of its own, and nothing is left of it") {
  const StagingHead head(kSays);
  REQUIRE(write_new_file(head.archive, "torn"));
  const CommandOutput output = head.run("/nowhere/dlrun-agent");
  CHECK(output.status.exit_code == kNotStaged);
  CHECK_FALSE(output.err.empty());
  CHECK(head.nothing_left());
}

TEST_CASE("an agent that is killed leaves no copy") {
  const StagingHead head("#!/bin/sh\nkill -KILL $$\n");
  head.pack();
  CHECK(head.run("/nowhere/dlrun-agent").status.exit_code == 137);
  CHECK(head.nothing_left());
}

TEST_CASE("where no folder can be made, the reason is said") {
  StagingHead head(kSays);
  head.pack();
  head.environment.set("TMPDIR", "/proc");
  const CommandOutput output = head.run("/nowhere/dlrun-agent");
  CHECK(output.status.exit_code == kNotStaged);
  CHECK(output.err.find("/proc") != std::string::npos);
}

TEST_CASE("what is copied depends on the job") {
  const StagingHead head(kSays);
  plan::Plan plan;
  CHECK(files_to_stage(plan, head.own).size() == 1);
  plan.mpi = plan::MpiProtocol::pmix;
  CHECK(files_to_stage(plan, head.own).size() == 2);
  plan.framework = "builtin";
  CHECK(files_to_stage(plan, head.own).size() == 3);  // its plug-ins are not built here
}

TEST_CASE("libraries that the installation brings travel with the builtin runtime alone") {
  const StagingHead head(kSays);
  fs::create_directories(head.own.plugins / "beside");
  StagingHead::write(head.own.plugins / "beside" / "libdnnl.so.2", "a library");
  StagingHead::write(head.own.plugins / "libdlrun-mpi-mpich-abi.so", "a plug-in");
  StagingHead::write(head.own.bin / "dlrun-train", "a program");
  plan::Plan plan;
  CHECK(files_to_stage(plan, head.own).size() == 1);
  plan.framework = "builtin";
  REQUIRE(write_archive(files_to_stage(plan, head.own), head.archive, head.environment));
  const auto listed = run_command({.argv = {"tar", "-tzf", head.archive}, .environment = head.environment});
  CHECK(listed->out ==
        "bin/dlrun-agent\nbin/dlrun-train\nlib/dlrun/libdlrun-mpi-mpich-abi.so\nlib/dlrun/beside/"
        "libdnnl.so.2\n");
}

TEST_CASE("a file that is missing at the head is an error with a next step") {
  const StagingHead head(kSays);
  fs::remove(head.own.agent());
  plan::Plan plan;
  const auto packed = write_archive(files_to_stage(plan, head.own), head.archive, head.environment);
  REQUIRE_FALSE(packed);
  CHECK(packed.error().what.find("dlrun cannot be packed for --stage") == 0);
}
