// The section environment: modules, variables, the container.
#include <array>

#include "src/base/quote.hpp"
#include "src/plan/job_sections.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

Result<EnvironmentChanges> read_changes(const Fields& fields, std::string_view path) {
  for (const auto& [name, value] : fields.node().entries) {
    if (!is_shell_identifier(name))
      return yaml::error_at(value, fmt::format("'{}' is not a valid variable name", name),
                            "use letters, digits and '_', not starting with a digit");
    if (is_reserved_variable(name))
      return yaml::error_at(value, fmt::format("dlrun itself sets {} for every rank", name));
  }
  return EnvironmentChanges(TRY(yaml::as_text_map(fields.node(), path)));
}

// "conda:NAME" or "venv:PATH", the path made absolute.
Result<std::string> read_activate(Fields& fields, const std::filesystem::path& base) {
  const std::string text = TRY(fields.text_or("activate", ""));
  if (text.empty()) return text;
  const Node& node = *fields.find("activate");
  TRY(check_single_line(node, "environment.activate"));
  if (text.starts_with("conda:") && text.size() > 6) return text;
  if (text.starts_with("venv:") && text.size() > 5)
    return "venv:" + (base / text.substr(5)).lexically_normal().string();
  return yaml::error_at(node, fmt::format("environment.activate: '{}' is not known", text),
                        "write conda:NAME or venv:PATH");
}

Result<std::optional<Container>> read_container(Fields& parent) {
  if (!parent.has("container")) return std::optional<Container>{};
  static const std::array<std::string, 8> engines{"apptainer", "singularity", "podman",  "charliecloud",
                                                  "enroot",    "pyxis",       "shifter", "sarus"};
  Fields fields = TRY(section(parent, "container"));
  Container out;
  out.image = TRY(fields.text_or("image", ""));
  out.engine = TRY(choice(fields, "engine", "apptainer", engines));
  out.mounts = TRY(fields.text_list("mounts"));
  TRY(fields.finish());
  if (out.image.empty()) return yaml::error_at(fields.node(), "'environment.container.image' is missing");
  return std::optional<Container>(std::move(out));
}

// Of variables' names, as in [A-Z]*_TOKEN.
Result<std::vector<std::string>> read_patterns(Fields& fields, std::string_view key) {
  std::vector<std::string> out = TRY(fields.text_list(key));
  for (const std::string& pattern : out)
    if (pattern.empty() || pattern.find_first_of("= \t\n") != std::string::npos)
      return yaml::error_at(
          *fields.find(key),
          fmt::format("{}: '{}' is not a pattern of variable names", fields.path(key), pattern),
          "write names, with * and ? as in a shell");
  return out;
}

// Folders of modulefiles, made absolute: they go onto the command line of `module use`, one line each.
Result<std::vector<std::string>> read_module_paths(Fields& fields, const std::filesystem::path& base) {
  std::vector<std::string> out = TRY(fields.text_list("module-paths"));
  for (std::string& path : out) {
    if (path.empty() || path.find_first_of(":\n") != std::string::npos || path.starts_with('-'))
      return yaml::error_at(*fields.find("module-paths"),
                            fmt::format("environment.module-paths: '{}' is not a folder name", path),
                            "write one folder per item");
    path = (base / path).lexically_normal().string();
  }
  return out;
}

}  // namespace

Result<JobEnvironment> read_environment(yaml::Fields fields, const std::filesystem::path& base) {
  JobEnvironment out;
  out.module_paths = TRY(read_module_paths(fields, base));
  out.modules = TRY(fields.text_list("modules"));
  out.activate = TRY(read_activate(fields, base));
  out.setup = TRY(fields.text_list("setup"));
  out.set = TRY(read_changes(TRY(section(fields, "set")), "environment.set"));
  out.defaults = TRY(read_changes(TRY(section(fields, "defaults")), "environment.defaults"));
  out.rules.allow = TRY(read_patterns(fields, "allow"));
  out.rules.deny = TRY(read_patterns(fields, "deny"));
  out.rules.secrets = TRY(read_patterns(fields, "secrets"));
  out.container = TRY(read_container(fields));
  TRY(fields.finish());
  for (const std::string& module : out.modules)
    if (module.empty() || module.find_first_of(" \t\n") != std::string::npos || module.starts_with('-'))
      return yaml::error_at(*fields.find("modules"),
                            fmt::format("environment.modules: '{}' is not a valid module name", module));
  return out;
}

}  // namespace dlrun::plan
