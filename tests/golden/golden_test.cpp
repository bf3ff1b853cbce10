// Golden tests: (job.yaml + allocation.json) -> plan.json and node scripts, and bad job files -> error texts,
// word for word. After a wanted change: cmake --build build/release --target refresh-golden, then read the
// difference.
#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "src/base/file.hpp"
#include "src/plan/config_layers.hpp"
#include "src/plan/make_plan.hpp"
#include "src/render/node_script.hpp"
#include "tests/golden/compare.hpp"

using namespace dlrun;
namespace fs = std::filesystem;
using golden::compare;
using golden::kData;
using golden::kHere;

namespace {

std::vector<fs::path> sorted(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

Result<Allocation> read_allocation(const fs::path& beside) {
  fs::path file = beside / "allocation.json";
  if (!fs::exists(file)) file = kHere / "machine.json";
  return allocation_from_json(TRY(parse_json(TRY(read_file(file)), file.filename().string())),
                              "allocation.json");
}

Result<plan::JobSpec> read_job(const fs::path& file) {
  const yaml::Node tree = TRY(yaml::parse(TRY(read_file(file)), "job.yaml"));
  return plan::read_job_spec(TRY(plan::merge_layers({plan::default_layer(), tree})), "/home/ann/jobs");
}

Result<plan::Plan> plan_job(const fs::path& job, const fs::path& folder) {
  plan::PlanInput in;
  in.spec = TRY(read_job(job));
  in.allocation = TRY(read_allocation(folder));
  const plan::AdapterPath path = plan::adapter_path({}, "", kData);
  in.adapter = TRY(plan::find_adapter(path, in.spec.framework, plan::place_of(in.spec, "framework")));
  in.job_id = in.spec.name + "-1a2b";
  in.run_directory = "/home/ann/runs/" + in.job_id;
  in.installation = {.bin = "/opt/dlrun/bin", .data = kData, .plugins = "/opt/dlrun/lib/dlrun"};
  in.detected_mpi = plan::MpiProtocol::pmix;
  return plan::make_plan(in);
}

}  // namespace

TEST_CASE("jobs: the plan and the node scripts") {
  const auto script = render::load_node_template(kData);
  REQUIRE_MESSAGE(script.has_value(), script.error().text());
  const std::vector<fs::path> folders = sorted(kHere / "jobs");
  REQUIRE(folders.size() >= 8);
  for (const fs::path& folder : folders) {
    CAPTURE(folder.filename().string());
    const auto plan = plan_job(folder / "job.yaml", folder);
    REQUIRE_MESSAGE(plan.has_value(), plan.error().text());
    compare(folder / "plan.json", to_pretty_text(to_json(*plan)));
    for (const plan::NodePlan& node : plan->nodes) {
      const auto text = render::render_node_script(*plan, node.index, *script);
      REQUIRE_MESSAGE(text.has_value(), text.error().text());
      compare(folder / fs::path(plan::node_script_name(node)).filename(), *text);
    }
  }
}

TEST_CASE("bad job files: the whole error text") {
  int seen = 0;
  for (const fs::path& file : sorted(kHere / "errors")) {
    if (file.extension() != ".yaml") continue;
    CAPTURE(file.filename().string());
    const auto plan = plan_job(file, kHere / "errors");
    REQUIRE_FALSE(plan.has_value());
    compare(fs::path(file).replace_extension(".txt"), plan.error().text() + "\n");
    ++seen;
  }
  CHECK(seen >= 30);
}
