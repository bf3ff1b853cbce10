#include "src/plan/secret_values.hpp"

#include <algorithm>
#include <array>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/plan/secret_words.hpp"
#include "src/plan/secrets.hpp"

namespace dlrun::plan {

void SecretValues::add(std::string_view value) {
  constexpr std::size_t shortest = 4;
  constexpr std::array<std::string_view, 5> no_secrets{"true", "false", "none", "null", "auto"};
  for (const std::string& line : split(value, '\n')) {
    const std::string plain(trim(line));
    const bool is_common = std::find(no_secrets.begin(), no_secrets.end(), plain) != no_secrets.end();
    const bool is_known = std::find(values_.begin(), values_.end(), plain) != values_.end();
    if (plain.size() < shortest || is_common || is_known) continue;
    const auto place = std::find_if(values_.begin(), values_.end(),
                                    [&](const std::string& other) { return other.size() < plain.size(); });
    values_.insert(place, plain);
  }
}

void SecretValues::add(const Environment& environment, const std::vector<std::string>& further) {
  for (const auto& [name, value] : environment.all())
    if (is_secret_value(name, value, further)) add(value);
}

// What was hidden there: the value, without its quotes.
void SecretValues::add_difference(std::string_view text, std::string_view shown) {
  const std::size_t at = shown.find(kHidden);
  if (at == shown.npos || text.substr(0, at) != shown.substr(0, at)) return;
  const std::string_view end = shown.substr(at + kHidden.size());
  if (end.find(kHidden) != end.npos || text.size() < at + end.size() || !text.ends_with(end)) return;
  std::string_view value = text.substr(at, text.size() - at - end.size());
  const bool quoted = value.size() > 2 && (value[0] == '\'' || value[0] == '"') && value.back() == value[0];
  add(quoted ? value.substr(1, value.size() - 2) : value);
}

void SecretValues::add(const Plan& plan) {
  const std::vector<std::string>& further = plan.environment_rules.secrets;
  for (const auto& [name, value] : plan.environment)
    if (is_secret_value(name, value, further)) add(value);
  for (const std::string& line : plan.prolog.setup)
    add_difference(line, without_secret_values(line, further));
  std::vector<Argv> commands = plan.checks;
  for (const RankPlan& rank : plan.ranks)
    if (commands.empty() || commands.back() != rank.argv) commands.push_back(rank.argv);
  for (const Argv& command : commands) {
    const Argv shown = without_secret_values(command, further);
    for (std::size_t i = 0; i < command.size(); ++i) add_difference(command[i], shown[i]);
  }
}

// In one pass: what stands in a secret's place may have another one in it.
std::string SecretValues::hidden(std::string text) const {
  std::string out;
  for (std::size_t done = 0;;) {
    std::size_t first = std::string::npos, size = 0;
    for (const std::string& value : values_)
      if (const std::size_t at = text.find(value, done); at < first) first = at, size = value.size();
    if (first == std::string::npos && done == 0) return text;
    if (first == std::string::npos) return out.append(text, done);
    out.append(text, done, first - done).append(kHidden);
    done = first + size;
  }
}

std::vector<std::string> SecretValues::hidden(std::vector<std::string> lines) const {
  for (std::string& line : lines) line = hidden(std::move(line));
  return lines;
}

Json SecretValues::hidden(Json json) const {
  if (values_.empty()) return json;
  if (json.is_string()) return hidden(json.get<std::string>());
  if (json.is_structured())
    for (Json& part : json) part = hidden(std::move(part));
  return json;
}

}  // namespace dlrun::plan
