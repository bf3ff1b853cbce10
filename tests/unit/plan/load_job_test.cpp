#include "src/plan/load_job.hpp"

#include <array>
#include <cstdlib>

#include <doctest/doctest.h>

#include "src/base/file.hpp"
#include "tests/unit/folder.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
namespace fs = std::filesystem;

namespace {}  // namespace

TEST_CASE("site < user < job file < flags, and the words after -- are the command's last") {
  const Folder folder;
  plan::JobSources sources;
  sources.job_file =
      folder.write("my job.yaml", "command: [x]\nlaunch: {grace: 3s}\nresources: {queue: job}\n");
  sources.site_file =
      folder.write("site.yaml", "launch: {grace: 1s, fan-out: 1}\nresources: {queue: site, account: site}\n");
  sources.user_file = folder.write("user.yaml", "launch: {fan-out: 2}\nresources: {account: user}\n");
  sources.overrides = {{.path = "resources.queue", .value = "flag", .source = "--queue"}};
  sources.words = {"-v"};
  const auto spec = plan::load_job(sources, "/elsewhere").value();
  CHECK(spec.launch.grace.count() == 3);
  CHECK(spec.launch.fan_out == 2);
  CHECK(spec.resources.queue == "flag");
  CHECK(spec.resources.account == "user");
  CHECK(spec.command == Argv{"x", "-v"});
  CHECK(spec.name == "my-job");
  CHECK(spec.base_directory == folder.path);
}

TEST_CASE("a job without a file: the command line says it all, and paths are relative to where it stands") {
  plan::JobSources sources;
  sources.overrides = {{.path = "framework", .value = "mpi", .source = "--framework"},
                       {.path = "checkpoint.dir", .value = "ckpt", .source = "--set"}};
  sources.words = {"./prog"};
  const auto spec = plan::load_job(sources, "/home/ann").value();
  CHECK(spec.framework == "mpi");
  CHECK(spec.name == "prog");
  CHECK(spec.checkpoint.dir == "/home/ann/ckpt");
}

TEST_CASE("files of the site and the user may be absent or empty; the job file may not") {
  const Folder folder;
  plan::JobSources sources;
  sources.job_file = folder.write("job.yaml", "command: [x]\n");
  sources.site_file = folder.path / "not-there.yaml";
  sources.user_file = folder.write("user.yaml", "# nothing yet\n");
  CHECK(plan::load_job(sources, "/").has_value());
  sources.job_file = folder.path / "job.yml";
  CHECK(
      error_of(plan::load_job(sources, "/")) ==
      fmt::format("cannot read {0}/job.yml: No such file or directory\n  hint: did you mean '{0}/job.yaml'?",
                  folder.path.string()));
  sources.job_file = folder.write("empty.yaml", "# nothing\n");
  CHECK(error_of(plan::load_job(sources, "/")) ==
        (folder.path / "empty.yaml").string() + ": the job file is empty");
  sources.job_file = folder.path;
  CHECK(error_of(plan::load_job(sources, "/")) == "cannot read " + folder.path.string() + ": is a directory");
}

TEST_CASE("a mistake in the site's file names the site's file") {
  const Folder folder;
  plan::JobSources sources;
  sources.job_file = folder.write("job.yaml", "command: [x]\n");
  sources.site_file = folder.write("site.yaml", "launch: {grase: 1s}\n");
  CHECK(error_of(plan::load_job(sources, "/"))
            .starts_with((folder.path / "site.yaml").string() + ":1:10: unknown key 'grase'"));
}
