// What the tests of planning share: a job, an allocation and a plan in one line each. Files are not touched.
#pragma once

#include <string>

#include "src/plan/make_plan.hpp"

namespace dlrun::test {

inline Result<plan::JobSpec> job(const std::string& text) {
  const auto tree = yaml::parse(text, "job.yaml");
  if (!tree) return fail(tree.error());
  return plan::read_job_spec(*tree, "/home/ann/jobs");
}

inline plan::Adapter adapter(const std::string& text) {
  return plan::parse_adapter(text, "frameworks/test.yaml").value();
}

inline plan::Adapter plain() {
  return adapter("name: plain\nsummary: any program\n");
}

inline AllocatedNode node(const std::string& host, int cpus,
                          std::optional<std::vector<std::string>> gpus = {}) {
  return {.host = HostName(host), .slots = 1, .cpus = cpus, .gpus = std::move(gpus)};
}

inline Allocation machine(int cpus, std::optional<std::vector<std::string>> gpus = {}) {
  Allocation out;
  out.scheduler = "local";
  out.nodes = {node("laptop", cpus, std::move(gpus))};
  return out;
}

inline plan::PlanInput input(const std::string& job_text, Allocation allocation,
                             plan::Adapter framework = plain()) {
  return {.spec = job(job_text).value(),
          .allocation = std::move(allocation),
          .adapter = std::move(framework),
          .job_id = "demo-1",
          .run_directory = "/home/ann/runs/demo-1",
          .working_directory = "",
          .installation = {.bin = "/opt/dlrun/bin", .data = "/opt/dlrun/share/dlrun", .plugins = ""},
          .detected_mpi = plan::MpiProtocol::none,
          .environment = {}};
}

inline std::string error_of(const auto& result) {
  return result ? std::string("no error") : result.error().text();
}

}  // namespace dlrun::test
