// See layer_settings.hpp.
#include "runtime/graph/operators/layer_settings.hpp"

namespace dlrun::runtime {

Result<std::pair<std::int64_t, std::int64_t>> read_pair(yaml::Fields& fields, std::string_view key,
                                                        std::int64_t fallback, std::int64_t low) {
  const yaml::Node* node = fields.find(key);
  if (node == nullptr) return std::pair(fallback, fallback);
  if (node->kind != yaml::Kind::list) {
    const auto both = TRY(yaml::as_integer(*node, fields.path(key), low, kMaxWindow));
    return std::pair(both, both);
  }
  if (node->items.size() != 2)
    return yaml::error_at(*node, fmt::format("{} is a number, or height and width", fields.path(key)));
  const auto height = TRY(yaml::as_integer(node->items[0], fields.path(key), low, kMaxWindow));
  return std::pair(height, TRY(yaml::as_integer(node->items[1], fields.path(key), low, kMaxWindow)));
}

Result<SplitBy> read_split(yaml::Fields& fields) {
  static const std::vector<std::string> names{"none", "columns", "rows"};
  return static_cast<SplitBy>(TRY(fields.choice_or("split", 0, names)));
}

SplitForm form_of(SplitBy split) {
  if (split == SplitBy::none) return SplitForm::whole;
  return split == SplitBy::columns ? SplitForm::columns : SplitForm::rows;
}

}  // namespace dlrun::runtime
