#include "src/base/fields.hpp"

#include <algorithm>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::yaml {
namespace {

std::string describe(const Node& node) {
  switch (node.kind) {
    case Kind::null:
      return "nothing";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
    case Kind::scalar:
      break;
  }
  constexpr std::size_t longest = 60;
  return "'" + (node.scalar.size() > longest ? node.scalar.substr(0, longest) + "..." : node.scalar) + "'";
}

tl::unexpected<Error> wrong(const Node& node, std::string_view name, std::string_view expected) {
  return error_at(node, fmt::format("{} must be {}, not {}", name, expected, describe(node)));
}

// Gives an Error of a conversion the node's place and the key's name.
Error located(Error error, const Node& node, std::string_view name) {
  error.what = fmt::format("{}: {}", name, error.what);
  error.where = node.source;
  return error;
}

// --set merges maps. A key of the map that it was laid over may make the whole malformed, and a person who
// gave a whole map expects no other keys.
std::string hint_for_leftover(const Node& map, std::string_view name, std::size_t entry) {
  constexpr std::string_view flag = "--set ";
  if (!map.source.starts_with(flag) || map.key_sources[entry].starts_with(flag)) return {};
  const std::string path = map.source.substr(flag.size());
  if (name != path && !name.starts_with(path + ".")) return {};
  return fmt::format(
      "--set {0} keeps the other keys of the map; to replace the map, put --set {0}=null first", path);
}

}  // namespace

Result<std::string> as_text(const Node& node, std::string_view name) {
  if (node.kind == Kind::null)
    return error_at(node, fmt::format("{} must be text, not nothing", name),
                    "write an empty text as \"\" (in a shell: '\"\"')");
  if (node.kind != Kind::scalar) return wrong(node, name, "text");
  return node.scalar;
}

Result<std::int64_t> as_integer(const Node& node, std::string_view name, std::int64_t low,
                                std::int64_t high) {
  if (node.kind != Kind::scalar) return wrong(node, name, "a whole number");
  auto value = parse_integer(node.scalar, low, high);
  if (!value) return fail(located(value.error(), node, name));
  return value;
}

Result<double> as_number(const Node& node, std::string_view name, double low, double high) {
  if (node.kind != Kind::scalar) return wrong(node, name, "a number");
  auto value = parse_number(node.scalar);
  if (!value) return fail(located(value.error(), node, name));
  if (*value < low || *value > high)
    return error_at(node, fmt::format("{}: {} is out of range [{}, {}]", name, node.scalar, low, high));
  return value;
}

Result<bool> as_bool(const Node& node, std::string_view name) {
  if (node.kind == Kind::scalar && node.scalar == "true") return true;
  if (node.kind == Kind::scalar && node.scalar == "false") return false;
  return wrong(node, name, "true or false");
}

Result<Seconds> as_duration(const Node& node, std::string_view name) {
  if (node.kind != Kind::scalar) return wrong(node, name, "a duration such as 10min");
  auto value = parse_duration(node.scalar);
  if (!value) return fail(located(value.error(), node, name));
  return value;
}

Result<Interval> as_interval(const Node& node, std::string_view name) {
  auto interval = parse_interval(TRY(as_text(node, name)));
  if (interval) return interval;
  return error_at(node, fmt::format("{}: {}", name, interval.error().what), interval.error().hint);
}

Result<std::uint64_t> as_size(const Node& node, std::string_view name) {
  if (node.kind != Kind::scalar) return wrong(node, name, "a size such as 8MiB");
  auto value = parse_size(node.scalar);
  if (!value) return fail(located(value.error(), node, name));
  return value;
}

Result<std::vector<std::string>> as_text_list(const Node& node, std::string_view name) {
  if (node.kind == Kind::null) return std::vector<std::string>{};
  if (node.kind == Kind::scalar) return std::vector<std::string>{node.scalar};
  if (node.kind != Kind::list) return wrong(node, name, "a list");
  std::vector<std::string> out;
  for (const Node& item : node.items)
    out.push_back(TRY(as_text(item, fmt::format("{}[{}]", name, out.size()))));
  return out;
}

Result<std::map<std::string, std::string>> as_text_map(const Node& node, std::string_view name) {
  std::map<std::string, std::string> out;
  if (node.kind == Kind::null) return out;
  if (node.kind != Kind::map) return wrong(node, name, "a map");
  for (const auto& [key, value] : node.entries)
    out[key] = TRY(as_text(value, fmt::format("{}.{}", name, key)));
  return out;
}

Result<std::size_t> as_choice(const Node& node, std::string_view name, std::span<const std::string> choices) {
  const std::string value = TRY(as_text(node, name));
  const auto found = std::find(choices.begin(), choices.end(), value);
  if (found == choices.end())
    return error_at(node, fmt::format("{}: '{}' is not known", name, value), did_you_mean(value, choices));
  return static_cast<std::size_t>(found - choices.begin());
}

Result<Fields> Fields::of(const Node& node, std::string name) {
  if (node.kind != Kind::map && node.kind != Kind::null)
    return wrong(node, name.empty() ? "the file" : name, "a map of keys");
  return Fields(&node, std::move(name));
}

std::string Fields::path(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
}

const Node* Fields::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  const Node* found = node_->find(key);
  return found != nullptr && found->kind == Kind::null ? nullptr : found;
}

Result<const Node*> Fields::require(std::string_view key) {
  const Node* found = find(key);
  if (found == nullptr) return error_at(*node_, fmt::format("'{}' is missing", path(key)));
  return found;
}

Result<std::string> Fields::text(std::string_view key) {
  return as_text(*TRY(require(key)), path(key));
}

Result<std::string> Fields::text_or(std::string_view key, std::string fallback) {
  const Node* found = find(key);
  return found == nullptr ? Result<std::string>(std::move(fallback)) : as_text(*found, path(key));
}

Result<std::int64_t> Fields::integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                                        std::int64_t high) {
  const Node* found = find(key);
  return found == nullptr ? Result<std::int64_t>(fallback) : as_integer(*found, path(key), low, high);
}

Result<double> Fields::number_or(std::string_view key, double fallback, double low, double high) {
  const Node* found = find(key);
  return found == nullptr ? Result<double>(fallback) : as_number(*found, path(key), low, high);
}

Result<bool> Fields::bool_or(std::string_view key, bool fallback) {
  const Node* found = find(key);
  return found == nullptr ? Result<bool>(fallback) : as_bool(*found, path(key));
}

Result<Seconds> Fields::duration_or(std::string_view key, Seconds fallback) {
  const Node* found = find(key);
  return found == nullptr ? Result<Seconds>(fallback) : as_duration(*found, path(key));
}

Result<std::uint64_t> Fields::size_or(std::string_view key, std::uint64_t fallback) {
  const Node* found = find(key);
  return found == nullptr ? Result<std::uint64_t>(fallback) : as_size(*found, path(key));
}

Result<std::vector<std::string>> Fields::text_list(std::string_view key) {
  const Node* found = find(key);
  return found == nullptr ? Result<std::vector<std::string>>(std::vector<std::string>{})
                          : as_text_list(*found, path(key));
}

Result<std::map<std::string, std::string>> Fields::text_map(std::string_view key) {
  const Node* found = find(key);
  if (found == nullptr) return std::map<std::string, std::string>{};
  return as_text_map(*found, path(key));
}

Result<std::size_t> Fields::choice_or(std::string_view key, std::size_t fallback,
                                      std::span<const std::string> choices) {
  const Node* found = find(key);
  return found == nullptr ? Result<std::size_t>(fallback) : as_choice(*found, path(key), choices);
}

// Our name for another tool's key, as it is written in this map, or as a path from the top of the file.
std::string Fields::hint_for(std::string_view unknown) const {
  std::string_view ours = our_name(unknown, others_);
  if (ours.empty()) return did_you_mean(unknown, known_);
  if (!name_.empty() && ours.starts_with(name_ + ".")) ours.remove_prefix(name_.size() + 1);
  return fmt::format("did you mean '{}'?", ours);
}

Result<void> Fields::finish() const {
  std::vector<Error> unknown;
  for (std::size_t i = 0; i < node_->entries.size(); ++i) {
    const std::string& key = node_->entries[i].first;
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string leftover = hint_for_leftover(*node_, name_, i);
    unknown.push_back(Error{.kind = ErrorKind::input,
                            .what = name_.empty() ? fmt::format("unknown key '{}'", key)
                                                  : fmt::format("unknown key '{}' in '{}'", key, name_),
                            .where = node_->key_sources[i],
                            .hint = leftover.empty() ? hint_for(key) : leftover});
  }
  if (unknown.empty()) return {};
  Error first = std::move(unknown.front());
  for (std::size_t i = 1; i < unknown.size(); ++i)
    first.also.push_back(fmt::format("{}: {}; {}", unknown[i].where, unknown[i].what, unknown[i].hint));
  return fail(std::move(first));
}

}  // namespace dlrun::yaml
