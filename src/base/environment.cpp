#include "src/base/environment.hpp"

#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "src/base/secret_variable.hpp"

extern char** environ;

namespace dlrun {

Environment Environment::of_this_process() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return from_entries(entries);
}

std::string take_secret(const char* variable) {
  char* const value = ::getenv(variable);
  if (value == nullptr) return {};
  std::string out = value;
  ::explicit_bzero(value, out.size());
  ::unsetenv(variable);
  return out;
}

Environment Environment::from_entries(const std::vector<std::string>& entries) {
  Environment out;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    out.values_.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

std::optional<std::string> Environment::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::string Environment::get(std::string_view name, std::string_view fallback) const {
  return find(name).value_or(std::string(fallback));
}

void Environment::set(std::string_view name, std::string_view value) {
  values_.insert_or_assign(std::string(name), std::string(value));
}

void Environment::unset(std::string_view name) {
  if (const auto found = values_.find(name); found != values_.end()) values_.erase(found);
}

void Environment::unset_prefix(std::string_view prefix) {
  std::erase_if(values_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

void Environment::merge(const FlatMap<std::string, std::string>& other) {
  for (const auto& [name, value] : other) set(name, value);
}

std::vector<std::string> Environment::entries() const {
  std::vector<std::string> out;
  out.reserve(values_.size());
  for (const auto& [name, value] : values_) out.push_back(name + "=" + value);
  return out;
}

}  // namespace dlrun
