#include "src/protocol/codec.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include "src/base/strings.hpp"
#include "src/base/version.hpp"
#include "src/protocol/message_table.hpp"

namespace dlrun::protocol {
namespace {

constexpr std::array<std::string_view, 2> kUrgencies{"polite", "now"}, kStreams{"out", "err"};

tl::unexpected<Error> refused(std::string what) {
  return fail(Error{.kind = ErrorKind::internal, .what = std::move(what)});
}

tl::unexpected<Error> wrong_type(const Json& value) {
  return refused("has the wrong type: " + short_text(value));
}

// Values of the header. Each read() says what is wrong with the value; who calls it knows the field's name.

Json write(bool value, Range) {
  return value;
}
Result<void> read(bool& into, const Json& value, Range) {
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

Json write(const std::string& value, Range) {
  return value;
}
Result<void> read(std::string& into, const Json& value, Range) {
  if (!value.is_string()) return wrong_type(value);
  into = value.get<std::string>();
  return {};
}

// The state of a process: one letter.
Json write(char value, Range) {
  return std::string(1, value);
}
Result<void> read(char& into, const Json& value, Range) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() != 1) return wrong_type(value);
  into = value.get_ref<const std::string&>().front();
  return {};
}

Json write(Seconds value, Range) {
  return value.count();
}
Result<void> read(Seconds& into, const Json& value, Range) {
  if (!value.is_number()) return wrong_type(value);
  const double seconds = value.get<double>();
  if (!std::isfinite(seconds) || seconds < 0)
    return refused("is out of range [0, infinity): " + short_text(value));
  into = Seconds(seconds);
  return {};
}

Json write(Rank value, Range) {
  return value.get();
}
Result<void> read(Rank& into, const Json& value, Range range) {
  int rank = 0;
  TRY(read(rank, value, range));
  into = Rank(rank);
  return {};
}

Json write(std::optional<Rank> value, Range) {
  return value ? Json(value->get()) : Json(nullptr);
}
Result<void> read(std::optional<Rank>& into, const Json& value, Range range) {
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
Json write(Urgency value, Range) {
  return kUrgencies.at(static_cast<std::size_t>(value));
}
Result<void> read(Urgency& into, const Json& value, Range) {
  return read_name(into, value, kUrgencies);
}
Json write(OutputStream value, Range) {
  return kStreams.at(static_cast<std::size_t>(value));
}
Result<void> read(OutputStream& into, const Json& value, Range) {
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
Json write(ErrorKind value, Range) {
  return static_cast<int>(value);
}
Result<void> read(ErrorKind& into, const Json& value, Range) {
  return read_number(into, value, ErrorKind::internal);
}
Json write(SignalSender value, Range) {
  return static_cast<int>(value);
}
Result<void> read(SignalSender& into, const Json& value, Range) {
  return read_number(into, value, SignalSender::other_user);
}

Json write(const Json& value, Shape) {
  return value;
}
Result<void> read(Json& into, const Json& value, Shape shape) {
  if (shape == Shape::object ? !value.is_object() : !value.is_array()) return wrong_type(value);
  into = value;
  return {};
}

Json write(const plan::NodeInventory& value, Range) {
  return plan::to_json(value);
}
Result<void> read(plan::NodeInventory& into, const Json& value, Range) {
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

// Parts of a message.

template <class Get, class Rule, class T>
void put(const Field<Get, Rule>& field, const T& from, Json& header, std::string&) {
  header[std::string(field.name)] = write(std::invoke(field.get, from), field.rule);
}
template <class Get, class Rule, class T>
Result<void> take(const Field<Get, Rule>& field, T& into, const Json& header, std::string&) {
  const auto found = header.find(field.name);
  if (found == header.end()) return refused(fmt::format("field '{}' is missing", field.name));
  auto taken = read(std::invoke(field.get, into), *found, field.rule);
  if (!taken) return refused(fmt::format("field '{}' {}", field.name, taken.error().what));
  return {};
}
template <class Get, class Rule>
bool has(const Field<Get, Rule>& field, std::string_view name) {
  return field.name == name;
}

template <class Get, class T>
void put(const Body<Get>& part, const T& from, Json&, std::string& body) {
  body = std::invoke(part.get, from);
}
template <class Get, class T>
Result<void> take(const Body<Get>& part, T& into, const Json&, std::string& body) {
  std::invoke(part.get, into) = std::exchange(body, {});
  return {};
}
template <class Get>
bool has(const Body<Get>&, std::string_view) {
  return false;
}

template <class Get, class T>
void put(const NulEnded<Get>& part, const T& from, Json&, std::string& body) {
  for (const std::string& entry : std::invoke(part.get, from)) body.append(entry).push_back('\0');
}
template <class Get, class T>
Result<void> take(const NulEnded<Get>& part, T& into, const Json&, std::string& body) {
  if (body.empty()) return {};
  if (body.back() != '\0') return refused(fmt::format("the last of the '{}' has no end", part.name));
  body.pop_back();
  std::invoke(part.get, into) = split(std::exchange(body, {}), '\0');
  return {};
}
template <class Get>
bool has(const NulEnded<Get>&, std::string_view) {
  return false;
}

template <class Get, class T>
void put(const SizedParts<Get>& part, const T& from, Json& header, std::string& body) {
  Json& sizes = header[std::string(part.name)] = Json::array();
  for (const std::string& each : std::invoke(part.get, from)) {
    sizes.push_back(each.size());
    body += each;
  }
}
template <class Get, class T>
Result<void> take(const SizedParts<Get>& part, T& into, const Json& header, std::string& body) {
  struct Sizes {
    std::vector<std::size_t> values;
  } sizes;
  TRY(take(protocol::field(part.name, &Sizes::values, kSizes), sizes, header, body));
  std::size_t at = 0;
  for (const std::size_t size : sizes.values) {
    if (size > body.size() - at)
      return refused(fmt::format("field '{}' says more than the body has", part.name));
    std::invoke(part.get, into).push_back(body.substr(at, size));
    at += size;
  }
  if (at != body.size()) return refused(fmt::format("field '{}' says less than the body has", part.name));
  body.clear();
  return {};
}
template <class Get>
bool has(const SizedParts<Get>& part, std::string_view name) {
  return part.name == name;
}

// Whole messages, and objects inside of them.

template <class T>
void put_parts(const T& from, Json& header, std::string& body) {
  std::apply([&](const auto&... part) { (put(part, from, header, body), ...); }, format_of<T>.parts);
}

template <class T>
bool has_field(std::string_view name) {
  return std::apply([&](const auto&... part) { return (has(part, name) || ...); }, format_of<T>.parts);
}

template <class T>
Result<T> take_parts(const Json& header, std::string& body) {
  T into;
  Result<void> taken;
  std::apply([&](const auto&... part) { (void)((taken = take(part, into, header, body)) && ...); },
             format_of<T>.parts);
  if (!taken) return fail(std::move(taken).error());
  const bool has_type = !format_of<T>.name.empty();
  for (const auto& member : header.items())
    if (!has_field<T>(member.key()) && !(has_type && member.key() == "type"))
      return refused(fmt::format("field '{}' is unknown", member.key()));
  if (!body.empty()) return refused("its body is not empty");
  return into;
}

template <Object T>
Json write(const T& value, Range) {
  Json out = Json::object();
  std::string body;
  put_parts(value, out, body);
  return out;
}
template <Object T>
Result<void> read(T& into, const Json& value, Range) {
  if (!value.is_object()) return wrong_type(value);
  std::string body;
  auto taken = take_parts<T>(value, body);
  if (!taken) return refused("is malformed: " + taken.error().what);
  into = std::move(*taken);
  return {};
}

template <class... Messages>
Message encode_any(const std::variant<Messages...>& message) {
  return std::visit(
      []<class T>(const T& value) {
        Message out{{{"type", format_of<T>.name}}};
        put_parts(value, out.header, out.body);
        return out;
      },
      message);
}

template <class Any, class T>
Result<Any> decode_as(Message& message) {
  auto taken = take_parts<T>(message.header, message.body);
  if (!taken) return refused(fmt::format("message '{}': {}", format_of<T>.name, taken.error().what));
  return std::move(*taken);
}

template <class... Messages>
Result<std::variant<Messages...>> decode_any(Message message, std::type_identity<std::variant<Messages...>>) {
  using Any = std::variant<Messages...>;
  const std::string type = message.type();
  Result<Any> out = refused(fmt::format("unknown message '{}'", type));
  (void)((format_of<Messages>.name == type && (out = decode_as<Any, Messages>(message), true)) || ...);
  return out;
}

template <class... Messages>
std::string_view name_of_any(const std::variant<Messages...>& message) {
  return std::visit([]<class T>(const T&) { return format_of<T>.name; }, message);
}

}  // namespace

Message encode(const ToAgent& message) {
  return encode_any(message);
}
Message encode(const FromAgent& message) {
  return encode_any(message);
}
Result<ToAgent> decode_to_agent(Message message) {
  return decode_any(std::move(message), std::type_identity<ToAgent>());
}
Result<FromAgent> decode_from_agent(Message message) {
  return decode_any(std::move(message), std::type_identity<FromAgent>());
}
std::string_view name_of(const ToAgent& message) {
  return name_of_any(message);
}
std::string_view name_of(const FromAgent& message) {
  return name_of_any(message);
}

Result<void> check_version(const from_agent::Ready& ready) {
  if (ready.version == dlrun::kVersion && ready.protocol == kVersion) return {};
  // Builds of one version may differ in what they say to each other: then the versions alone explain nothing.
  const bool same = ready.version == dlrun::kVersion;
  return fail(Error{
      .kind = ErrorKind::unavailable,
      .what = same ? fmt::format("version mismatch: dlrun-agent {} (protocol {}), dlrun {} (protocol {})",
                                 ready.version, ready.protocol, dlrun::kVersion, kVersion)
                   : fmt::format("version mismatch: dlrun-agent {}, dlrun {}",
                                 ready.version.empty() ? "of an unknown version" : ready.version,
                                 dlrun::kVersion),
      .hint = "install the same version everywhere, dlrun and dlrun-agent side by side"});
}

Result<void> check_version(const Message& first) {
  if (first.type() != format_of<from_agent::Ready>.name) return {};
  const auto version = dlrun::field<std::string>(first.header, "version", "ready");
  const auto protocol = dlrun::field<int>(first.header, "protocol", "ready");
  return check_version(
      from_agent::Ready{.version = version ? *version : "", .protocol = protocol ? *protocol : 0});
}

}  // namespace dlrun::protocol
