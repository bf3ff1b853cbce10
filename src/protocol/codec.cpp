#include "src/protocol/codec.hpp"

#include <functional>
#include <type_traits>
#include <utility>

#include "src/base/strings.hpp"
#include "src/base/version.hpp"
#include "src/protocol/codec_values.hpp"
#include "src/protocol/message_table.hpp"

namespace dlrun::protocol {
namespace {

using namespace values;  // NOLINT: it was made for this file

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
  std::size_t total = 0;
  for (const std::string& each : std::invoke(part.get, from)) total += each.size();
  body.reserve(total);
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
  std::invoke(part.get, into).reserve(sizes.values.size());
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

}  // namespace

namespace values {

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

}  // namespace values

namespace {

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

template <class Any, class... Messages>
Result<Any> decode_any(Message message, std::type_identity<std::variant<Messages...>>) {
  const std::string_view type = message.type();
  std::optional<Result<Any>> out;
  (void)((format_of<Messages>.name == type && (out.emplace(decode_as<Any, Messages>(message)), true)) || ...);
  return out ? std::move(*out) : refused(fmt::format("unknown message '{}'", type));
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
  return decode_any<ToAgent>(std::move(message), std::type_identity<ToAgentTypes::Variant>());
}
Result<FromAgent> decode_from_agent(Message message) {
  return decode_any<FromAgent>(std::move(message), std::type_identity<FromAgentTypes::Variant>());
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

template class dlrun::OneOf<dlrun::protocol::ToAgentTypes>;
template class dlrun::OneOf<dlrun::protocol::FromAgentTypes>;
