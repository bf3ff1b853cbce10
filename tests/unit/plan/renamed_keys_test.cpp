#include "src/plan/renamed_keys.hpp"

#include <doctest/doctest.h>

#include "src/plan/load_job.hpp"
#include "tests/unit/folder.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

std::string source_of(const plan::JobSpec& spec, const std::string& path) {
  for (const plan::Explained& line : plan::explain(spec.tree))
    if (line.path == path) return line.value + " from " + line.source;
  return "nothing";
}

}  // namespace

TEST_CASE("a key under its old name is read, explained under the new one, and said once") {
  const Folder folder;
  plan::JobSources sources;
  sources.job_file = folder.write("job.yaml", "command: [x]\nchain: {way: ahead}\n");
  sources.user_file = folder.write("user.yaml", "chain: {way: requeue}\n");
  const auto spec = plan::load_job(sources, "/").value();
  CHECK(spec.chain.mode == "presubmit");
  CHECK(spec.warnings == std::vector<std::string>{"chain.way is now called chain.mode",
                                                  "chain.mode: ahead is now called presubmit"});
  CHECK(source_of(spec, "chain.mode") ==
        fmt::format("presubmit from {}/job.yaml:2:14", folder.path.string()));
  CHECK(source_of(spec, "chain.way") == "nothing");
}

TEST_CASE("a flag's old key and old values have their new names") {
  plan::JobSources sources;
  sources.words = {"./prog"};
  sources.overrides = {{.path = "chain.way", .value = "requeue", .source = "--set chain.way"},
                       {.path = "launch.via", .value = "sge", .source = "--via"},
                       {.path = "launch.mpi", .value = "engine", .source = "--mpi"}};
  const auto spec = plan::load_job(sources, "/").value();
  CHECK(spec.chain.mode == "requeue");
  CHECK(spec.launch.via == "gridengine");
  CHECK(spec.launch.mpi == "native");
  CHECK(spec.warnings == std::vector<std::string>{"chain.way is now called chain.mode",
                                                  "launch.mpi: engine is now called native",
                                                  "launch.via: sge is now called gridengine"});
}

TEST_CASE("a key under both names is refused at its place") {
  const Folder folder;
  plan::JobSources sources;
  sources.job_file = folder.write("job.yaml", "command: [x]\nchain: {mode: resubmit, way: requeue}\n");
  CHECK(error_of(plan::load_job(sources, "/")) ==
        fmt::format("{}/job.yaml:2:30: chain.way is now called chain.mode, and both are set\n"
                    "  hint: keep chain.mode",
                    folder.path.string()));
}

TEST_CASE("new names are not warned about") {
  plan::JobSources sources;
  sources.words = {"./prog"};
  sources.overrides = {{.path = "launch.via", .value = "gridengine", .source = "--via"}};
  CHECK(plan::load_job(sources, "/").value().warnings.empty());
}

TEST_CASE("a job that was read takes further overrides without its file") {
  const Folder folder;
  plan::JobSources sources;
  sources.job_file = folder.write("job.yaml", "command: [x, $N]\nresources: {nodes: 2}\n");
  sources.variables = Environment::from_entries({"N=7"});
  const auto spec = plan::load_job(sources, "/").value();
  std::filesystem::remove(folder.path / "job.yaml");
  const auto changed =
      plan::override_job(spec, sources, {{"resources.walltime", "600s", "--chain auto"}}).value();
  CHECK(changed.resources.walltime == Seconds(600));
  CHECK(changed.resources.nodes == 2);
  CHECK(changed.command == Argv{"x", "7"});
  CHECK(changed.base_directory == spec.base_directory);
  CHECK(plan::place_of(changed, "resources.walltime") == "--chain auto");
}
