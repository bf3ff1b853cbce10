// Fields: reads a YAML map strictly. Each key is asked for by name and type; finish() refuses every key that
// nobody asked for, with its place and the nearest name among those that were. So the list of valid keys
// cannot go stale.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/interval.hpp"
#include "src/base/strings.hpp"
#include "src/base/yaml.hpp"

namespace dlrun::yaml {

// Conversions of one node; the Error names the place, the value seen and what was expected.
Result<std::string> as_text(const Node& node, std::string_view name);
Result<std::int64_t> as_integer(const Node& node, std::string_view name, std::int64_t low, std::int64_t high);
Result<double> as_number(const Node& node, std::string_view name, double low, double high);
Result<bool> as_bool(const Node& node, std::string_view name);
Result<Seconds> as_duration(const Node& node, std::string_view name);
Result<Interval> as_interval(const Node& node, std::string_view name);
Result<std::uint64_t> as_size(const Node& node, std::string_view name);
Result<std::vector<std::string>> as_text_list(const Node& node,
                                              std::string_view name);  // a single scalar is a list of one
Result<std::map<std::string, std::string>> as_text_map(const Node& node, std::string_view name);
// One of the `choices`, as its index.
Result<std::size_t> as_choice(const Node& node, std::string_view name, std::span<const std::string> choices);

class Fields {
 public:
  // `name` is what errors call the map ("train.optimizer"). A null node counts as an empty map.
  static Result<Fields> of(const Node& node, std::string name);

  const Node* find(std::string_view key);             // nullptr where absent or null; marks the key as known
  Result<const Node*> require(std::string_view key);  // an Error at the map's place where absent
  bool has(std::string_view key) { return find(key) != nullptr; }

  Result<std::string> text(std::string_view key);
  Result<std::string> text_or(std::string_view key, std::string fallback);
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                                  std::int64_t high);
  Result<double> number_or(std::string_view key, double fallback, double low, double high);
  Result<bool> bool_or(std::string_view key, bool fallback);
  Result<Seconds> duration_or(std::string_view key, Seconds fallback);
  Result<std::uint64_t> size_or(std::string_view key, std::uint64_t fallback);
  Result<std::vector<std::string>> text_list(std::string_view key);           // empty where absent
  Result<std::map<std::string, std::string>> text_map(std::string_view key);  // empty where absent
  Result<std::size_t> choice_or(std::string_view key, std::size_t fallback,
                                std::span<const std::string> choices);

  // Marks a key as valid without reading it.
  void known(std::string_view key) { find(key); }
  // Keys of other tools and the whole paths of ours, for the hint of an unknown key.
  void hint_at(std::span<const OtherName> others) { others_ = others; }
  // Refuses unknown keys; the Error lists all of them.
  Result<void> finish() const;
  const Node& node() const { return *node_; }
  std::string path(std::string_view key) const;  // "train.optimizer.lr"

 private:
  std::string hint_for(std::string_view unknown) const;
  Fields(const Node* node, std::string name) : node_(node), name_(std::move(name)) {}
  const Node* node_;
  std::string name_;
  std::vector<std::string> known_;
  std::span<const OtherName> others_;
};

}  // namespace dlrun::yaml
