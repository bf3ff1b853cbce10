// Golden tests: one job, and the script that each scheduler gets for it.
#include "src/chain/submit.hpp"

#include "src/base/quote.hpp"
#include "tests/golden/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

// Asked which nodes there are, no scheduler's program answers.
class NoCommands final : public CommandRunner {
 public:
  Result<CommandOutput> run(const Command& command) const override {
    return fail(ErrorKind::input, "{} is not there", command.argv.front());
  }
};

}  // namespace

TEST_CASE("submit: the script of each scheduler") {
  job::Request request;
  request.sources.job_file = kHere / "submit" / "job.yaml";
  request.here = "/home/ann/my jobs";
  request.installation = {.bin = "/opt/dlrun/bin", .data = kData, .plugins = "/opt/dlrun/lib/dlrun"};
  for (const std::string name : {"slurm", "pbs", "torque", "gridengine", "lsf", "flux"}) {
    CAPTURE(name);
    request.scheduler = name;
    request.sources.overrides.clear();
    const std::string extra = name == "gridengine" ? "[-pe mpi 64, -l gpu=4]" : "[--reservation=week]";
    request.sources.overrides.push_back({"resources.extra", extra, "--set", plan::Override::Reading::yaml});
    const auto plan = job::plan_submission(request, {"--framework-dir=$x", "--run-dir=it's\n#$ -l all"},
                                           "/home/ann/my jobs/runs/submit-flowers-1", NoCommands());
    REQUIRE_MESSAGE(plan.has_value(), plan.error().text());
    compare(kHere / "submit" / (name + ".sh"), plan->script);
    compare(kHere / "submit" / (name + ".command"), shell_join(plan->command) + "\n");
    CHECK(plan->frozen_job.find("8:00:30") != std::string::npos);
  }
}

TEST_CASE("submit: one element of an array is a job alone that knows its index") {
  job::Request request;
  request.sources.job_file = kHere / "submit" / "job.yaml";
  request.sources.overrides.push_back(
      {"resources.extra", "[--mem=1G, '--array=3,7-9']", "--set", plan::Override::Reading::yaml});
  request.here = "/home/ann";
  request.installation = {.bin = "/opt/dlrun/bin", .data = kData, .plugins = "/opt/dlrun/lib/dlrun"};
  request.scheduler = "slurm";
  const fs::path folder = "/home/ann/runs/submit-flowers-1";
  const auto plan_chain = [&](const job::ChainAsk& chain) {
    return job::plan_submission(request, {}, folder, NoCommands(), chain).value();
  };
  CHECK(plan_chain({.links = 4}).array == std::vector{3, 7, 8, 9});
  CHECK(job::element_folder(folder, 7) == "/home/ann/runs/submit-flowers-1.7");
  compare(kHere / "submit" / "slurm-element.sh", plan_chain({.links = 4, .element = 7}).script);
}
