#include "src/plan/stage_paths.hpp"

#include "src/plan/stage_in.hpp"

namespace dlrun::plan {
namespace {

void replace(std::string& text, const std::string& folder) {
  text = with_stage_folder(text, folder);
}

void replace(std::vector<std::string>& texts, const std::string& folder) {
  for (std::string& text : texts) replace(text, folder);
}

void replace(yaml::Node& node, const std::string& folder) {
  if (node.kind == yaml::Kind::scalar) replace(node.scalar, folder);
  for (yaml::Node& item : node.items) replace(item, folder);
  for (auto& [name, value] : node.entries) replace(value, folder);
}

}  // namespace

JobSpec with_stage_paths(JobSpec spec, const std::string& folder) {
  replace(spec.command, folder);
  replace(spec.environment.activate, folder);
  replace(spec.environment.module_paths, folder);
  if (spec.environment.container) {
    replace(spec.environment.container->image, folder);
    replace(spec.environment.container->mounts, folder);
  }
  replace(spec.train, folder);
  return spec;
}

}  // namespace dlrun::plan
