#include "src/cli/set_conflicts.hpp"

#include <fmt/core.h>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/plan/renamed_keys.hpp"

namespace dlrun::cli {
namespace {

using plan::Override;

// What --set gives to this key, alone or within a map (--set 'resources={nodes: 3}'); nullptr: nothing. A
// value that does not read is told where the job is read.
const yaml::Node* value_of(const yaml::Node& tree, std::string_view path) {
  const yaml::Node* at = &tree;
  for (const std::string& key : split(path, '.'))
    if (at = at->find(key); at == nullptr) break;
  return at;
}

bool is_same(const yaml::Node& value, const std::string& text) {
  return value.kind == yaml::Kind::scalar && value.scalar == text;
}

std::string shown(const yaml::Node& value) {
  return value.kind == yaml::Kind::scalar ? value.scalar : to_text(yaml::to_json(value));
}

// A switch shows what it sets: "--no-bind (launch.bind=false)".
std::string shown(const Override& flag) {
  if (flag.value == "true" || flag.value == "false")
    return fmt::format("{} ({}={})", flag.source, flag.path, flag.value);
  return fmt::format("{} {}", flag.source, flag.value);
}

Error conflict(const Override& flag, const yaml::Node& value) {
  return Error{.kind = ErrorKind::usage,
               .what = fmt::format("{} and --set {}={} give different values of {}", shown(flag), flag.path,
                                   shown(value), flag.path),
               .where = {},
               .hint = "remove one of them",
               .also = {}};
}

}  // namespace

Result<void> check_set_conflicts(const std::vector<Override>& flags, const std::vector<Override>& sets) {
  if (flags.empty() || sets.empty()) return {};
  yaml::Node tree;
  std::vector<std::string> warnings;  // told where the job is read
  for (Override one : sets) {
    one.path = plan::renamed_key(one.path, warnings);
    if (!plan::apply_override(tree, one)) return {};
  }
  for (const Override& flag : flags)
    if (const yaml::Node* value = value_of(tree, flag.path); value != nullptr && !is_same(*value, flag.value))
      return fail(conflict(flag, *value));
  return {};
}

}  // namespace dlrun::cli
