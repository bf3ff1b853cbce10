// See job_sections.hpp.
#include "src/plan/job_sections.hpp"

#include "src/plan/other_keys.hpp"

namespace dlrun::plan {

Result<yaml::Fields> section(yaml::Fields& parent, std::string_view key) {
  static const yaml::Node absent;
  const yaml::Node* found = parent.find(key);
  yaml::Fields out = TRY(yaml::Fields::of(found == nullptr ? absent : *found, parent.path(key)));
  out.hint_at(other_keys());
  return out;
}

Result<std::optional<int>> optional_integer(yaml::Fields& fields, std::string_view key, std::int64_t low,
                                            std::int64_t high) {
  if (!fields.has(key)) return std::optional<int>{};
  return std::optional<int>(static_cast<int>(TRY(fields.integer_or(key, 0, low, high))));
}

Result<std::string> choice(yaml::Fields& fields, std::string_view key, std::string fallback,
                           std::span<const std::string> choices) {
  if (!fields.has(key)) return fallback;
  return choices[TRY(fields.choice_or(key, 0, choices))];
}

Result<void> check_single_line(const yaml::Node& node, std::string_view name) {
  if (node.scalar.find('\n') == std::string::npos) return {};
  return yaml::error_at(node, fmt::format("{} must be one line", name));
}

}  // namespace dlrun::plan
