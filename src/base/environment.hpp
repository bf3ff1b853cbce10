// The environment as a value: captured once in main, passed on, changed as a copy, given to a child whole.
// environment.cpp is the only reader of the process's own environment; nobody calls getenv.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/flat_map.hpp"

namespace dlrun {

class Environment {
 public:
  static Environment of_this_process();
  // From "NAME=value" entries; an entry without '=' is dropped, the first of equal names wins (as getenv has
  // it).
  static Environment from_entries(const std::vector<std::string>& entries);

  std::optional<std::string> find(std::string_view name) const;
  std::string get(std::string_view name, std::string_view fallback = {}) const;
  void set(std::string_view name, std::string_view value);
  void unset(std::string_view name);
  void unset_prefix(std::string_view prefix);  // drops every name that starts so
  void merge(const FlatMap<std::string, std::string>& other);

  std::vector<std::string> entries() const;  // "NAME=value", sorted
  const std::map<std::string, std::string, std::less<>>& all() const { return values_; }
  friend bool operator==(const Environment&, const Environment&) = default;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace dlrun
