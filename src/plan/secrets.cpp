#include "src/plan/secrets.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fnmatch.h>

#include "src/plan/secret_words.hpp"

namespace dlrun::plan {
namespace {

// A name with one of these in it, or with one of those at its end. Plain comparisons: thousands of node
// scripts ask.
constexpr std::array<std::string_view, 8> kSecretParts{"TOKEN",      "SECRET",     "PASSWORD", "PASSWD",
                                                       "PASSPHRASE", "CREDENTIAL", "APIKEY",   "API_KEY"};
constexpr std::array<std::string_view, 2> kSecretEnds{"_KEY", "_PAT"};
// Without these no shell and no program starts properly.
constexpr std::array<std::string_view, 9> kNeeded{"PATH", "HOME",   "USER", "LOGNAME",        "SHELL",
                                                  "LANG", "TMPDIR", "TERM", "LD_LIBRARY_PATH"};

bool matches(const std::string& name, const char* pattern) {
  return ::fnmatch(pattern, name.c_str(), FNM_CASEFOLD) == 0;
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(name, pattern.c_str()); });
}

}  // namespace

bool is_secret(const std::string& name, const std::vector<std::string>& further) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return matches_any(name, further) ||
         std::any_of(kSecretParts.begin(), kSecretParts.end(),
                     [&](std::string_view part) { return upper.find(part) != std::string::npos; }) ||
         std::any_of(kSecretEnds.begin(), kSecretEnds.end(),
                     [&](std::string_view end) { return upper.ends_with(end); });
}

Plan without_secrets(Plan plan) {
  // What differs from rank to rank is the adapter's, and no secret.
  for (auto& [name, value] : plan.environment)
    if (is_secret(name, plan.environment_rules.secrets)) value = kHidden;
  for (std::string& line : plan.prolog.setup)
    line = without_secret_values(line, plan.environment_rules.secrets);
  for (Argv& check : plan.checks) check = without_secret_values(check, plan.environment_rules.secrets);
  for (RankPlan& rank : plan.ranks)
    rank.argv = without_secret_values(rank.argv, plan.environment_rules.secrets);
  return plan;
}

Environment filter_environment(const Environment& environment, const EnvironmentRules& rules) {
  if (rules.allow.empty() && rules.deny.empty()) return environment;
  Environment out;
  for (const auto& [name, value] : environment.all()) {
    const bool needed = std::find(kNeeded.begin(), kNeeded.end(), std::string_view(name)) != kNeeded.end();
    const bool allowed = rules.allow.empty() || needed || matches_any(name, rules.allow);
    if (allowed && !matches_any(name, rules.deny)) out.set(name, value);
  }
  return out;
}

}  // namespace dlrun::plan
