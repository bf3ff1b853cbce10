// Which variables are secrets, by their names, and which are handed on at all. A secret's value reaches the
// ranks and nothing else: no file, no error text, no output of ours has it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

// What is shown in a secret's place.
inline constexpr std::string_view kHidden = "(secret, not shown)";

// *TOKEN*, *SECRET*, *PASSWORD*, *_KEY and the like, and the job's own patterns; capitals do not matter.
bool is_secret(const std::string& name, const std::vector<std::string>& further);

// The plan as it may be shown and kept: without the values of secrets, those in commands and setup lines
// too (secret_words.hpp).
Plan without_secrets(Plan plan);

// The variables that go to the ranks: those of `allow` (all where it is empty; what a shell needs, always),
// but none of `deny`.
Environment filter_environment(const Environment& environment, const EnvironmentRules& rules);

}  // namespace dlrun::plan
