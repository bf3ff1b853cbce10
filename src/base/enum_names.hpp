// EnumNames: one table of an enum's values and their names, for reading and writing them. The table is
// searched in both directions, so nothing depends on the order of the values.
#pragma once

#include <array>
#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlrun {

template <class Enum, std::size_t N>
struct EnumNames {
  std::array<std::pair<Enum, std::string_view>, N> rows;

  /// The name of a value, which must be in the table.
  constexpr std::string_view name(Enum value) const {
    for (const auto& [known, name] : rows)
      if (known == value) return name;
    assert(false && "a value without a name");
    return {};
  }
  /// The value of a name; empty where no value has it.
  constexpr std::optional<Enum> value(std::string_view name) const {
    for (const auto& [value, known] : rows)
      if (known == name) return value;
    return std::nullopt;
  }
  /// All names in the order of the table, for hints.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& row : rows) out.emplace_back(row.second);
    return out;
  }
};

/// A table of these rows: enum_names<Color>({{Color::red, "red"}, {Color::blue, "blue"}}).
template <class Enum, std::size_t N>
constexpr EnumNames<Enum, N> enum_names(const std::pair<Enum, std::string_view> (&rows)[N]) {
  EnumNames<Enum, N> out{};
  for (std::size_t i = 0; i < N; ++i) out.rows[i].first = rows[i].first, out.rows[i].second = rows[i].second;
  return out;
}

}  // namespace dlrun
