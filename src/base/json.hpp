// JSON in and out: nlohmann/json behind Results. A header includes this file only where it holds a Json as a
// value; all others need json_fwd.hpp alone.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun {

// No text that dlrun or a scheduler writes is deeper or longer; YAML has the same limit of depth.
constexpr int kMaxJsonDepth = 64;
constexpr std::size_t kMaxJsonBytes = std::size_t{256} << 20;

// Parses one JSON text within these limits; `where` names the source in the error, which gives line and
// column.
Result<Json> parse_json(std::string_view text, std::string_view where, int maximum_depth = kMaxJsonDepth);

// Compact form that never throws: bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& value);
/// Whether a text comes back from JSON as it was: it is UTF-8.
bool is_json_text(std::string_view text);
// A value as an error text shows it: scalars cut after 60 bytes, "a list" and "an object" without what is in
// them.
std::string short_text(const Json& value);
// Indented by two, with a closing newline: for files and people.
std::string to_pretty_text(const Json& value);

// Whether an integer type can hold a number unchanged; true for all other types. The library itself silently
// truncates reals and numbers that are too large.
template <class T>
bool holds(const Json& value, std::type_identity<T>) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (value.is_number_unsigned()) return std::in_range<T>(value.get<std::uint64_t>());
    return !value.is_number() || (value.is_number_integer() && std::in_range<T>(value.get<std::int64_t>()));
  }
  return true;
}

template <class T>
bool holds(const Json& value, std::type_identity<std::vector<T>>) {
  return !value.is_array() || std::all_of(value.begin(), value.end(), [](const Json& each) {
    return holds(each, std::type_identity<T>());
  });
}

// Field access for values we read back ourselves: an Error names the field that is missing or of another
// type.
template <class T>
Result<T> field(const Json& object, std::string_view name, std::string_view where) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end())
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("field '{}' is missing", name),
                      .where = std::string(where)});
  try {
    if (holds(*found, std::type_identity<T>())) return found->template get<T>();
  } catch (const nlohmann::json::exception&) {  // said below
  }
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("field '{}' has the wrong type: {}", name, short_text(*found)),
                    .where = std::string(where)});
}

}  // namespace dlrun
