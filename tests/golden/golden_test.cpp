// Golden tests: (job.yaml + allocation.json) -> plan.json and node scripts, and bad job files -> error texts,
// word for word. After a wanted change: cmake --build build/release --target refresh-golden, then read the
// difference.
#include "src/render/node_script.hpp"
#include "tests/golden/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

Result<plan::Plan> plan_file(const fs::path& job, const fs::path& beside) {
  fs::path file = beside / "allocation.json";
  if (!fs::exists(file)) file = kHere / "machine.json";
  Allocation allocation = TRY(allocation_from_json(
      TRY(parse_json(TRY(read_file(file)), file.filename().string())), "allocation.json"));
  return plan_job(TRY(read_job(TRY(read_file(job)))), std::move(allocation));
}

}  // namespace

TEST_CASE("jobs: the plan and the node scripts") {
  const auto script = render::load_node_template(kData);
  REQUIRE_MESSAGE(script.has_value(), script.error().text());
  const std::vector<fs::path> folders = sorted(kHere / "jobs");
  REQUIRE(folders.size() >= 8);
  for (const fs::path& folder : folders) {
    CAPTURE(folder.filename().string());
    const auto plan = plan_file(folder / "job.yaml", folder);
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
    const auto plan = plan_file(file, kHere / "errors");
    REQUIRE_FALSE(plan.has_value());
    compare(fs::path(file).replace_extension(".txt"), plan.error().text() + "\n");
    ++seen;
  }
  CHECK(seen >= 30);
}
