#include "src/plan/renamed_keys.hpp"

#include <algorithm>

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

using yaml::Node;

struct RenamedKey {
  std::string_view old_path, new_path;  // in the same section
};
constexpr RenamedKey kRenamedKeys[] = {{"chain.way", "chain.mode"}};

struct RenamedValue {
  std::string_view path, old_value, new_value;
};
constexpr RenamedValue kRenamedValues[] = {{"launch.mpi", "engine", "native"},
                                           {"chain.mode", "ahead", "presubmit"}};
constexpr RenamedValue kRenamedInAdapters[] = {{"mpi", "engine", "native"}};

void warn_once(std::string text, std::vector<std::string>& warnings) {
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end())
    warnings.push_back(std::move(text));
}

std::string_view last_key(std::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

// The map that the key of this path is in.
Node* section_of(Node& tree, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == path.npos) return &tree;
  for (auto& [name, value] : tree.entries)
    if (name == path.substr(0, dot)) return section_of(value, path.substr(dot + 1));
  return nullptr;
}

void rename_value(Node& tree, const RenamedValue& renamed, std::vector<std::string>& warnings) {
  Node* section = section_of(tree, renamed.path);
  if (section == nullptr) return;
  for (auto& [name, value] : section->entries) {
    if (name != last_key(renamed.path) || value.scalar != renamed.old_value) continue;
    value.scalar = renamed.new_value;
    warn_once(fmt::format("{}: {} is now called {}", renamed.path, renamed.old_value, renamed.new_value),
              warnings);
  }
}

}  // namespace

std::string renamed_key(const std::string& path, std::vector<std::string>& warnings) {
  for (const auto& [old_path, new_path] : kRenamedKeys) {
    if (path != old_path) continue;
    warn_once(fmt::format("{} is now called {}", old_path, new_path), warnings);
    return std::string(new_path);
  }
  return path;
}

Result<void> rename_keys(Node& layer, std::vector<std::string>& warnings) {
  for (const auto& [old_path, new_path] : kRenamedKeys) {
    Node* section = section_of(layer, old_path);
    if (section == nullptr || section->find(last_key(old_path)) == nullptr) continue;
    if (section->find(last_key(new_path)) != nullptr)
      return yaml::error_at(*section->find(last_key(old_path)),
                            fmt::format("{} is now called {}, and both are set", old_path, new_path),
                            fmt::format("keep {}", new_path));
    for (auto& entry : section->entries)
      if (entry.first == last_key(old_path)) entry.first = last_key(new_path);
    warn_once(fmt::format("{} is now called {}", old_path, new_path), warnings);
  }
  return {};
}

void rename_values(Node& tree, std::vector<std::string>& warnings) {
  for (const RenamedValue& renamed : kRenamedValues) rename_value(tree, renamed, warnings);
  for (const Scheduler& scheduler : all_schedulers())
    for (const std::string_view alias : scheduler.aliases)
      rename_value(tree, {"launch.via", alias, scheduler.name}, warnings);
}

void rename_adapter_values(Node& tree, std::vector<std::string>& warnings) {
  for (const RenamedValue& renamed : kRenamedInAdapters) rename_value(tree, renamed, warnings);
}

}  // namespace dlrun::plan
