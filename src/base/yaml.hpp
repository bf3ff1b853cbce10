// Strict YAML as a value tree: every node knows where it came from, so that any later check can name
// file:line:column. parse() refuses duplicate keys, several documents, anchors and keys that are not plain
// text. Trees overlay each other (site < user < job < flags) and keep the source of each leaf. yaml-cpp is
// used in yaml.cpp and nowhere else. JSON is read by the same reader, being YAML; what a program wrote for
// itself comes back through from_json().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun::yaml {

enum class Kind { null, scalar, list, map };
enum class Style { plain, quoted };  // a quoted scalar is text, whatever it looks like

struct Node {
  struct Entry;

  Kind kind = Kind::null;
  Style style = Style::plain;
  std::string scalar;
  std::vector<Node> items;               // list
  std::vector<Entry> entries;            // map, in the order written
  std::vector<std::string> key_sources;  // map: where each key stands
  std::string source;                    // "job.yaml:12:3", or "--nodes" for a flag

  const Node* find(std::string_view key) const;
  void set(std::string_view key, Node value);  // replaces or appends
};

// A std::pair in all but name: clang 14 cannot hold a pair of the type that is just being defined.
struct Node::Entry {
  std::string first;
  Node second;
  Entry(std::string key, Node value) : first(std::move(key)), second(std::move(value)) {}
};

// Parses one document; `file` is what errors call it. An empty text is a null node.
Result<Node> parse(std::string_view text, const std::string& file);

// A scalar node for a value that did not come from a file.
Node scalar(std::string value, std::string source);
Node list(const std::vector<std::string>& values, const std::string& source);

// `above` laid over `below`: maps merge key by key, anything else replaces.
Node overlay(Node below, Node above);

// Sets the value at a dotted path ("train.epochs"), making the maps on the way; the value is parsed as YAML.
// An Error where the path runs through something that is not a map, or `value` does not parse.
Result<void> set_path(Node& root, std::string_view path, std::string_view value, const std::string& source);

// For handing a subtree to another program with its places: {"value": ..., "sources": {"/batch":
// "job.yaml:9:10"}, "keys": {"/batch": "job.yaml:9:3"}}.
Json to_json_with_sources(const Node& node);
Result<Node> from_json_with_sources(const Json& json);
// The plain value: numbers and booleans as JSON ones where the scalar is plain and reads as one.
Json to_json(const Node& node);

// An Error at the node's place.
tl::unexpected<Error> error_at(const Node& node, std::string what, std::string hint = {});

}  // namespace dlrun::yaml
