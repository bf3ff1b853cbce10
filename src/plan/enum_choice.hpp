// enum_or(): a key of a YAML file that takes one of an enum's names.
#pragma once

#include "src/base/enum_names.hpp"
#include "src/base/fields.hpp"

namespace dlrun::plan {

/// The value whose name stands at `key`; the fallback where the key is absent.
template <class Enum, std::size_t N>
Result<Enum> enum_or(yaml::Fields& fields, std::string_view key, Enum fallback,
                     const EnumNames<Enum, N>& names) {
  if (!fields.has(key)) return fallback;
  const std::vector<std::string> all = names.names();
  return names.rows[TRY(fields.choice_or(key, 0, all))].first;
}

}  // namespace dlrun::plan
