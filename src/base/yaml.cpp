#include "src/base/yaml.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "src/base/json.hpp"
#include "src/base/json_members.hpp"
#include "src/base/named_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::yaml {
namespace {

constexpr std::size_t kMaxDepth = 64;  // deeper nesting is no job file, and recursion must end

std::string place(const std::string& file, const YAML::Mark& mark) {
  return fmt::format("{}:{}:{}", file, mark.line + 1, mark.column + 1);
}

// Builds the tree from yaml-cpp's events. The events, not its nodes, show duplicate keys, anchors and
// quoting.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string file) : file_(std::move(file)) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    accept(std::move(node), mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not supported");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node;
    node.kind = Kind::scalar;
    node.scalar = value;
    node.style = tag == "!" ? Style::quoted : Style::plain;
    if (node.style == Style::plain && (value == "~" || value == "null" || value.empty()))
      node.kind = Kind::null;
    if (!tag.empty() && tag != "!" && tag != "?") return refuse(mark, "tags (!name) are not supported");
    accept(std::move(node), mark, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  Result<Node> result() {
    if (problem_) return fail(*problem_);
    return std::move(root_);
  }

 private:
  struct Level {
    Node node;
    std::unordered_map<std::string, std::size_t> places;  // of its keys, in the order written
    bool has_key = false;
    std::string key;
    std::string key_source;
  };

  void refuse(const YAML::Mark& mark, std::string what) {
    if (!problem_)
      problem_ = Error{.kind = ErrorKind::input, .what = std::move(what), .where = place(file_, mark)};
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags (!name) are not supported");
    if (anchor != 0) refuse(mark, "anchors (&name) are not supported");
    if (levels_.size() >= kMaxDepth) refuse(mark, fmt::format("nested deeper than {} levels", kMaxDepth));
    if (!levels_.empty() && levels_.back().node.kind == Kind::map && !levels_.back().has_key)
      refuse(mark, "a key must be plain text");
    Level level;
    level.node.kind = kind;
    level.node.source = place(file_, mark);
    levels_.push_back(std::move(level));
  }

  void close() {
    Node node = std::move(levels_.back().node);
    levels_.pop_back();
    place_value(std::move(node));
  }

  void accept(Node node, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) refuse(mark, "anchors (&name) are not supported");
    node.source = place(file_, mark);
    if (!levels_.empty() && levels_.back().node.kind == Kind::map && !levels_.back().has_key)
      return take_key(std::move(node), mark);
    place_value(std::move(node));
  }

  void take_key(Node node, const YAML::Mark& mark) {
    Level& level = levels_.back();
    if (node.kind == Kind::null && node.scalar.empty()) refuse(mark, "a key must be plain text");
    if (node.scalar == "<<") refuse(mark, "merge keys (<<) are not supported");
    const auto [first, is_new] = level.places.emplace(node.scalar, level.places.size());
    if (!is_new)
      refuse(mark, fmt::format("duplicate key '{}'; it was first set at {}", node.scalar,
                               level.node.key_sources[first->second]));
    level.key = std::move(node.scalar);
    level.key_source = std::move(node.source);
    level.has_key = true;
  }

  void place_value(Node node) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Kind::list) {
      level.node.items.push_back(std::move(node));
      return;
    }
    level.node.entries.emplace_back(std::move(level.key), std::move(node));
    level.node.key_sources.push_back(std::move(level.key_source));
    level.has_key = false;
  }

  std::string file_;
  std::vector<Level> levels_;
  Node root_;
  std::optional<Error> problem_;
};

// yaml-cpp recurses once a nesting level and accepts any byte; both are bounded before it sees the text.
Result<void> check_text(std::string_view text, const std::string& file) {
  std::size_t line = 1, column = 1, depth = 0, indent_runs = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\n' && c != '\t' && c != '\r')
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("control character 0x{:02x}", byte),
                        .where = fmt::format("{}:{}:{}", file, line, column)});
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    indent_runs = c == '\n' ? 0 : indent_runs + ((c == '-' || c == '?' || c == ':') ? 1 : 0);
    if (depth > 4 * kMaxDepth || indent_runs > 4096)
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("nested deeper than {} levels", kMaxDepth),
                        .where = fmt::format("{}:{}:{}", file, line, column)});
    if (c == '\n')
      ++line, column = 1;
    else
      ++column;
  }
  return {};
}

// The line of the error, or the one before it, where a tab indents it: the usual cause, which yaml-cpp does
// not name.
std::optional<std::size_t> tab_indented(std::string_view text, int error_line) {
  const std::vector<std::string> lines = split(text, '\n');
  const auto last = static_cast<std::size_t>(std::max(error_line, 0));
  for (std::size_t number = last > 0 ? last - 1 : 0; number <= last && number < lines.size(); ++number) {
    const std::string& line = lines[number];
    if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos) return number;
  }
  return std::nullopt;
}

Error not_yaml(std::string_view text, const std::string& file, const YAML::Exception& problem) {
  if (const auto line = tab_indented(text, problem.mark.line))
    return Error{.kind = ErrorKind::input,
                 .what = "this line is indented with a tab; YAML allows only spaces",
                 .where = fmt::format("{}:{}:1", file, *line + 1),
                 .hint = "replace the tab with spaces"};
  return Error{
      .kind = ErrorKind::input, .what = "not valid YAML: " + problem.msg, .where = place(file, problem.mark)};
}

// yaml-cpp takes a quoted text that has no closing quote as ended by the end of the file, with all keys in
// it. Not where a comment without a newline comes behind.
Result<void> check_last_quote(std::string_view text, const std::string& file) {
  if (text.find_first_of("'\"") == std::string_view::npos) return {};
  std::istringstream stream{std::string(text) + (text.ends_with('\n') ? "#" : "\n#")};
  YAML::Parser parser(stream);
  Builder builder(file);
  try {
    parser.HandleNextDocument(builder);
    return {};
  } catch (const YAML::Exception& problem) {
    Error error = not_yaml(text, file, problem);
    error.what = "a quoted text has no closing quote";
    error.hint = "the quote may be far above this place";
    return fail(std::move(error));
  }
}

void collect_sources(const Node& node, const std::string& path, JsonMembers& out) {
  out[path] = node.source;
  for (std::size_t i = 0; i < node.items.size(); ++i)
    collect_sources(node.items[i], fmt::format("{}/{}", path, i), out);
  for (const auto& [key, value] : node.entries) collect_sources(value, path + "/" + key, out);
}

// Where the keys themselves stand: an unknown key is named at its own place, not at its value's.
void collect_key_sources(const Node& node, const std::string& path, JsonMembers& out) {
  for (std::size_t i = 0; i < node.items.size(); ++i)
    collect_key_sources(node.items[i], fmt::format("{}/{}", path, i), out);
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    const std::string below = path + "/" + node.entries[i].first;
    out[below] = node.key_sources[i];
    collect_key_sources(node.entries[i].second, below, out);
  }
}

// The entry of each path in "sources" or "keys"; entries that are not text are ignored.
using Places = std::unordered_map<std::string_view, std::string_view>;

Places places_in(const Json& object) {
  Places out;
  out.reserve(object.size());
  for (const auto& [path, place] : object.items())
    if (place.is_string()) out.emplace(path, place.get_ref<const std::string&>());
  return out;
}

void restore_key_sources(Node& node, const std::string& path, const Places& keys) {
  for (std::size_t i = 0; i < node.items.size(); ++i)
    restore_key_sources(node.items[i], fmt::format("{}/{}", path, i), keys);
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    const std::string below = path + "/" + node.entries[i].first;
    if (const auto found = keys.find(below); found != keys.end()) node.key_sources[i] = found->second;
    restore_key_sources(node.entries[i].second, below, keys);
  }
}

void restore_sources(Node& node, const std::string& path, const Places& sources) {
  if (const auto found = sources.find(path); found != sources.end()) node.source = found->second;
  for (std::size_t i = 0; i < node.items.size(); ++i)
    restore_sources(node.items[i], fmt::format("{}/{}", path, i), sources);
  for (auto& [key, value] : node.entries) restore_sources(value, path + "/" + key, sources);
  node.key_sources.assign(node.entries.size(), node.source);
  for (std::size_t i = 0; i < node.entries.size(); ++i) node.key_sources[i] = node.entries[i].second.source;
}

std::unordered_map<std::string, std::size_t> places_of_keys(const Node& node) {
  std::unordered_map<std::string, std::size_t> out;
  for (std::size_t i = 0; i < node.entries.size(); ++i) out.emplace(node.entries[i].first, i);
  return out;
}

void lay_over(Node& below, Node above) {
  if (below.kind != Kind::map || above.kind != Kind::map) {
    below = std::move(above);
    return;
  }
  if (!above.source.empty()) below.source = above.source;  // errors about the whole point at the upper layer
  const auto places = places_of_keys(below);
  for (std::size_t i = 0; i < above.entries.size(); ++i) {
    auto& [key, value] = above.entries[i];
    if (const auto old = places.find(key); old != places.end()) {
      lay_over(below.entries[old->second].second, std::move(value));
      below.key_sources[old->second] = std::move(above.key_sources[i]);
    } else {
      below.entries.emplace_back(std::move(key), std::move(value));
      below.key_sources.push_back(std::move(above.key_sources[i]));
    }
  }
}

Node node_from_json(const Json& json) {
  Node node;
  if (json.is_object()) {
    node.kind = Kind::map;
    for (const auto& [key, value] : json.items()) node.entries.emplace_back(key, node_from_json(value));
  } else if (json.is_array()) {
    node.kind = Kind::list;
    for (const Json& value : json) node.items.push_back(node_from_json(value));
  } else if (!json.is_null()) {
    node.kind = Kind::scalar;
    node.style = json.is_string() ? Style::quoted : Style::plain;
    node.scalar = json.is_string() ? json.get<std::string>() : json.dump();
  }
  return node;
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

void Node::set(std::string_view key, Node value) {
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].first == key) {
      key_sources[i] = value.source;
      entries[i].second = std::move(value);
      return;
    }
  key_sources.push_back(value.source);
  entries.emplace_back(std::string(key), std::move(value));
}

Result<Node> parse(std::string_view whole, const std::string& file) {
  const std::string_view text = TRY(utf8_text(whole, file));
  TRY(check_text(text, file));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(file);
    if (!parser.HandleNextDocument(builder)) {
      Node empty;
      empty.source = file;
      return empty;
    }
    Node root = TRY(builder.result());
    Builder more(file);
    if (parser.HandleNextDocument(more))
      return fail(Error{.kind = ErrorKind::input,
                        .what = "a second YAML document starts here; a file may hold one",
                        .where = file});
    TRY(check_last_quote(text, file));
    return root;
  } catch (const YAML::Exception& problem) {
    return fail(not_yaml(text, file, problem));
  } catch (const std::exception& problem) {
    return fail(Error{
        .kind = ErrorKind::input, .what = std::string("not valid YAML: ") + problem.what(), .where = file});
  }
}

Node scalar(std::string value, std::string source) {
  Node node;
  node.kind = Kind::scalar;
  node.scalar = std::move(value);
  node.source = std::move(source);
  return node;
}

Node list(const std::vector<std::string>& values, const std::string& source) {
  Node node;
  node.kind = Kind::list;
  node.source = source;
  for (const std::string& value : values) {
    node.items.push_back(scalar(value, source));
    node.items.back().style = Style::quoted;
  }
  return node;
}

Node overlay(Node below, Node above) {
  lay_over(below, std::move(above));
  return below;
}

Result<void> set_path(Node& root, std::string_view path, std::string_view value, const std::string& source) {
  Node leaf = TRY(parse(value, source));
  const auto relabel = [&](auto&& self, Node& node) -> void {
    node.source = source;
    for (std::string& key : node.key_sources) key = source;
    for (Node& item : node.items) self(self, item);
    for (auto& entry : node.entries) self(self, entry.second);
  };
  relabel(relabel, leaf);
  const std::vector<std::string> keys = split(path, '.');
  if (std::any_of(keys.begin(), keys.end(), [](const std::string& key) { return key.empty(); }) ||
      keys.size() > kMaxDepth)
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("'{}' is not a path of keys", path),
                      .where = source,
                      .hint = "write it as --set train.epochs=3"});
  Node tree = std::move(leaf);
  for (std::size_t i = keys.size(); i-- > 0;) {
    Node map;
    map.kind = Kind::map;
    map.source = source;
    map.set(keys[i], std::move(tree));
    tree = std::move(map);
  }
  const Node* walk = &root;
  for (std::size_t i = 0; walk != nullptr && i + 1 < keys.size(); ++i) {
    walk = walk->find(keys[i]);
    if (walk != nullptr && walk->kind != Kind::map && walk->kind != Kind::null)
      return fail(Error{.kind = ErrorKind::usage,
                        .what = fmt::format("cannot set '{}': '{}' is not a map but stands at {}", path,
                                            keys[i], walk->source),
                        .where = source});
  }
  root = overlay(std::move(root), std::move(tree));
  return {};
}

Json to_json(const Node& node) {
  switch (node.kind) {
    case Kind::null:
      return nullptr;
    case Kind::list: {
      Json out = Json::array();
      for (const Node& item : node.items) out.push_back(to_json(item));
      return out;
    }
    case Kind::map: {
      Json out = Json::object();
      JsonMembers members(out);
      for (const auto& [key, value] : node.entries) members[key] = to_json(value);
      return out;
    }
    case Kind::scalar:
      break;
  }
  if (node.style == Style::quoted) return node.scalar;
  if (node.scalar == "true") return true;
  if (node.scalar == "false") return false;
  // A number becomes a JSON number only if it reads back as written: "1.10" and "007" are text (versions,
  // host names).
  if (Json parsed = Json::parse(node.scalar, nullptr, false);
      parsed.is_number() && parsed.dump() == node.scalar)
    return parsed;
  return node.scalar;
}

Json to_json_with_sources(const Node& node) {
  Json out, sources, keys;
  JsonMembers members(out), members_of_sources(sources), members_of_keys(keys);
  collect_sources(node, "", members_of_sources);
  collect_key_sources(node, "", members_of_keys);
  members["value"] = to_json(node);
  members["sources"] = std::move(sources);
  members["keys"] = std::move(keys);
  return out;
}

Result<Node> from_json_with_sources(const Json& json) {
  if (!json.is_object() || !json.contains("value") || !json.contains("sources") ||
      !json["sources"].is_object())
    return fail(ErrorKind::input, "not a tree with sources: {}", short_text(json));
  Node node = node_from_json(json["value"]);
  restore_sources(node, "", places_in(json["sources"]));
  if (json.contains("keys") && json["keys"].is_object())
    restore_key_sources(node, "", places_in(json["keys"]));
  return node;
}

tl::unexpected<Error> error_at(const Node& node, std::string what, std::string hint) {
  return fail(Error{
      .kind = ErrorKind::input, .what = std::move(what), .where = node.source, .hint = std::move(hint)});
}

}  // namespace dlrun::yaml
