#include "src/plan/stage_in.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "src/plan/job_checks.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

constexpr const char* kJob =
    "framework: builtin\n"
    "stage: [{from: data.tar.gz, unpack: true, reuse: true}, {from: /p/words/, to: shm, time-limit: 10min}]\n"
    "environment: {activate: 'venv:/DLRUN_STAGE/data/env'}\n"
    "train: {model: mnist-cnn, data: {format: idx, dir: /DLRUN_STAGE/data}}\n";

constexpr const char* kBuiltin =
    "name: builtin\nsummary: trains\ncommand: [train]\nchecks: [[check]]\n"
    "files: {train.json: \"{{train.config}}\"}\n";

}  // namespace

TEST_CASE("the items of a job have names, absolute sources and limits that add up") {
  const plan::JobSpec spec = job(kJob).value();
  REQUIRE(spec.stage.size() == 2);
  CHECK(spec.stage[0].name == "data");
  CHECK(spec.stage[0].from.ends_with("/data.tar.gz"));
  CHECK(spec.stage[0].from.starts_with('/'));
  CHECK(spec.stage[0].to == "node-local");
  CHECK(spec.stage[1].name == "words");
  CHECK(plan::stage_limit(spec.stage) == Seconds(4200));
  std::vector<plan::StageIn> unlimited = spec.stage;
  unlimited[0].time_limit = Seconds(0);
  CHECK(plan::stage_limit(unlimited) == Seconds(0));
  for (const plan::StageIn& item : spec.stage)
    CHECK(plan::stage_in_from_json(plan::to_json(item), "x").value() == item);
}

TEST_CASE("paths of the job lead to the folder of its run, and ranks have its variables") {
  const plan::Plan made = plan::make_plan(input(kJob, machine(4), adapter(kBuiltin))).value();
  const std::string folder = made.stage.folder;
  CHECK(folder == "/tmp/dlrun-staged-" + made.job_id);
  CHECK(made.environment.at("DLRUN_STAGE") == folder);
  CHECK(made.environment.at("DLRUN_STAGE_WORDS") == folder + "/words");
  CHECK(made.prolog.activate == "source " + folder + "/data/env/bin/activate && export VIRTUAL_ENV=" +
                                    folder + "/data/env PATH=" + folder + "/data/env/bin:\"$PATH\"");
  CHECK(std::any_of(made.files.begin(), made.files.end(), [&](const auto& file) {
    return file.second.find(folder + "/data") != std::string::npos;
  }));
  CHECK(made.has_setup());
  CHECK(plan::checks_need_setup(made));
  const plan::Plan again = plan::plan_from_json(plan::to_json(made)).value();
  CHECK(again.stage.items == made.stage.items);
  CHECK(again.stage.folder == folder);
}

TEST_CASE("an adapter may name an item of the job") {
  const std::string of_words =
      "name: reader\nsummary: reads\nprocess: per-rank\n"
      "env: {WORDS: \"{{stage.words}}\", OTHER: {if: stage.other, value: \"{{stage.other}}\"}}\n";
  const std::string reader = "framework: reader\ncommand: [read]\nstage: [{from: /p/words}]\n";
  const plan::Plan made = plan::make_plan(input(reader, machine(4), adapter(of_words))).value();
  CHECK(made.environment.at("WORDS") == made.stage.folder + "/words");
  CHECK_FALSE(made.environment.contains("OTHER"));
  const auto none =
      plan::make_plan(input("framework: reader\ncommand: [read]\n", machine(4), adapter(of_words)));
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().text().find("'stage.words' has no value in this job") != std::string::npos);
}

TEST_CASE("only a whole placeholder is the folder") {
  CHECK(plan::with_stage_folder("--a=/DLRUN_STAGE/x:/DLRUN_STAGE", "/f") == "--a=/f/x:/f");
  CHECK(plan::with_stage_folder("/DLRUN_STAGES/x", "/f") == "/DLRUN_STAGES/x");
  CHECK(plan::stage_variable("a-b.tar") == "DLRUN_STAGE_A_B_TAR");
}
