// What the golden tests share: a job planned as in production, and text that is compared with the file kept,
// or written to it where DLRUN_REFRESH_GOLDEN asks for that.
#pragma once

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "src/base/environment.hpp"
#include "src/base/file.hpp"
#include "src/plan/config_layers.hpp"
#include "src/plan/make_plan.hpp"

namespace dlrun::test {

namespace fs = std::filesystem;

inline const fs::path kHere = TEST_DATA_DIR;
inline const fs::path kData =
    kHere.parent_path().parent_path();  // the sources have the shape of the installed data

inline void compare(const fs::path& file, const std::string& now) {
  if (Environment::of_this_process().find("DLRUN_REFRESH_GOLDEN").has_value()) {
    REQUIRE(replace_file(file, now, Durability::none).has_value());
    return;
  }
  CAPTURE(file.filename().string());
  const auto kept = read_file(file);
  REQUIRE_MESSAGE(kept.has_value(), "missing; refresh-golden writes it");
  CHECK(*kept == now);
}

inline std::vector<fs::path> sorted(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

inline Result<plan::JobSpec> read_job(const std::string& text) {
  const yaml::Node tree = TRY(yaml::parse(text, "job.yaml"));
  return plan::read_job_spec(TRY(plan::merge_layers({plan::default_layer(), tree})), "/home/ann/jobs");
}

inline Result<plan::Plan> plan_job(plan::JobSpec spec, Allocation allocation) {
  plan::PlanInput in;
  in.spec = std::move(spec);
  in.allocation = std::move(allocation);
  const plan::AdapterPath path = plan::adapter_path({}, "", kData);
  in.adapter = TRY(plan::find_adapter(path, in.spec.framework, plan::place_of(in.spec, "framework")));
  in.job_id = in.spec.name + "-1a2b";
  in.run_directory = "/home/ann/runs/" + in.job_id;
  in.installation = {.bin = "/opt/dlrun/bin", .data = kData, .plugins = "/opt/dlrun/lib/dlrun"};
  // As if the program of an MPI job were linked to Open MPI, and that of any other to none.
  in.detected_mpi = in.adapter.mpi == "detect" ? plan::MpiProtocol::none : plan::MpiProtocol::pmix;
  return plan::make_plan(in);
}

}  // namespace dlrun::test
