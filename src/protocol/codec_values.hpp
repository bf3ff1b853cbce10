// How the values in a message's header are written to JSON and read from it: an overload of write() and
// read() for each type. Each read() says what is wrong with the value; who calls it knows the field's name.
// For codec.cpp alone, which defines the two for objects inside of messages.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/protocol/message_table.hpp"

namespace dlrun::protocol::values {

inline constexpr std::array<std::string_view, 2> kUrgencies{"polite", "now"}, kStreams{"out", "err"};

inline tl::unexpected<Error> refused(std::string what) {
  return fail(Error{.kind = ErrorKind::internal, .what = std::move(what)});
}

inline tl::unexpected<Error> wrong_type(const Json& value) {
  return refused("has the wrong type: " + short_text(value));
}

inline Json write(bool value, Range) {
  return value;
}
inline Result<void> read(bool& into, const Json& value, Range) {
  if (!value.is_boolean()) return wrong_type(value);
  into = value.get<bool>();
  return {};
}

template <class T>
concept Number = std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>;

template <Number T>
Json write(T value, Range) {
  return value;
}
template <Number T>
Result<void> read(T& into, const Json& value, Range range) {
  if (!value.is_number_integer()) return wrong_type(value);
  if (!holds(value, std::type_identity<std::int64_t>()) || value.get<std::int64_t>() < range.low ||
      value.get<std::int64_t>() > range.high)
    return refused(fmt::format("is out of range [{}, {}]: {}", range.low, range.high, short_text(value)));
  into = value.get<T>();
  return {};
}

inline Json write(const std::string& value, Range) {
  return value;
}
inline Result<void> read(std::string& into, const Json& value, Range) {
  if (!value.is_string()) return wrong_type(value);
  into = value.get<std::string>();
  return {};
}

// The state of a process: one letter.
inline Json write(char value, Range) {
  return std::string(1, value);
}
inline Result<void> read(char& into, const Json& value, Range) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() != 1) return wrong_type(value);
  into = value.get_ref<const std::string&>().front();
  return {};
}

inline Json write(Seconds value, Range) {
  return value.count();
}
inline Result<void> read(Seconds& into, const Json& value, Range) {
  if (!value.is_number()) return wrong_type(value);
  const double seconds = value.get<double>();
  if (!std::isfinite(seconds) || seconds < 0)
    return refused("is out of range [0, infinity): " + short_text(value));
  into = Seconds(seconds);
  return {};
}

inline Json write(Rank value, Range) {
  return value.get();
}
inline Result<void> read(Rank& into, const Json& value, Range range) {
  int rank = 0;
  TRY(read(rank, value, range));
  into = Rank(rank);
  return {};
}

inline Json write(NodeIndex value, Range) {
  return value.get();
}
inline Result<void> read(NodeIndex& into, const Json& value, Range range) {
  int node = 0;
  TRY(read(node, value, range));
  into = NodeIndex(node);
  return {};
}

inline Json write(std::optional<NodeIndex> value, Range) {
  return value ? Json(value->get()) : Json(nullptr);
}
inline Result<void> read(std::optional<NodeIndex>& into, const Json& value, Range range) {
  if (value.is_null()) return into.reset(), Result<void>();
  return read(into.emplace(), value, range);
}

inline Json write(std::optional<Rank> value, Range) {
  return value ? Json(value->get()) : Json(nullptr);
}
inline Result<void> read(std::optional<Rank>& into, const Json& value, Range range) {
  if (value.is_null()) return into.reset(), Result<void>();
  return read(into.emplace(), value, range);
}

template <class Enum>
Result<void> read_name(Enum& into, const Json& value, const std::array<std::string_view, 2>& names) {
  if (!value.is_string()) return wrong_type(value);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (value.get_ref<const std::string&>() == names[i]) return into = static_cast<Enum>(i), Result<void>();
  return refused("has the unknown value " + short_text(value));
}
inline Json write(Urgency value, Range) {
  return kUrgencies.at(static_cast<std::size_t>(value));
}
inline Result<void> read(Urgency& into, const Json& value, Range) {
  return read_name(into, value, kUrgencies);
}
inline Json write(OutputStream value, Range) {
  return kStreams.at(static_cast<std::size_t>(value));
}
inline Result<void> read(OutputStream& into, const Json& value, Range) {
  return read_name(into, value, kStreams);
}

// Numbers, as events.jsonl has them.
template <class Enum>
Result<void> read_number(Enum& into, const Json& value, Enum last) {
  int number = 0;
  TRY(read(number, value, Range{0, static_cast<int>(last)}));
  into = static_cast<Enum>(number);
  return {};
}
inline Json write(ErrorKind value, Range) {
  return static_cast<int>(value);
}
inline Result<void> read(ErrorKind& into, const Json& value, Range) {
  return read_number(into, value, ErrorKind::internal);
}
inline Json write(SignalSender value, Range) {
  return static_cast<int>(value);
}
inline Result<void> read(SignalSender& into, const Json& value, Range) {
  return read_number(into, value, SignalSender::other_user);
}

inline Json write(const Json& value, Shape) {
  return value;
}
inline Result<void> read(Json& into, const Json& value, Shape shape) {
  if (shape == Shape::object ? !value.is_object() : !value.is_array()) return wrong_type(value);
  into = value;
  return {};
}

inline Json write(const plan::NodeInventory& value, Range) {
  return plan::to_json(value);
}
inline Result<void> read(plan::NodeInventory& into, const Json& value, Range) {
  if (!value.is_object()) return wrong_type(value);
  auto inventory = plan::inventory_from_json(value, "its value");
  if (!inventory) return refused("is malformed: " + inventory.error().text());
  into = std::move(*inventory);
  return {};
}

template <class T>
concept Object = !std::is_same_v<std::remove_cv_t<decltype(format_of<T>)>, const int> && requires {
  format_of<T>.parts;
};

// In codec.cpp.
template <Object T>
Json write(const T& value, Range);
template <Object T>
Result<void> read(T& into, const Json& value, Range);

template <class T>
Json write(const std::vector<T>& value, Range range) {
  Json out = Json::array();
  for (const T& each : value) out.push_back(write(each, range));
  return out;
}
template <class T>
Result<void> read(std::vector<T>& into, const Json& value, Range range) {
  if (!value.is_array()) return wrong_type(value);
  into.reserve(value.size());
  for (const Json& each : value) TRY(read(into.emplace_back(), each, range));
  return {};
}

}  // namespace dlrun::protocol::values
