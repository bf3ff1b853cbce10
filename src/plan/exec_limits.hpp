// What the system lets a program be started with. A plan that passes the limit would fail on every node, one
// rank after the other, with "argument list too long"; here it is one error that says what is too long.
#pragma once

#include "src/plan/plan.hpp"

namespace dlrun::plan {

// Linux takes no argument and no "NAME=value" longer than this, its closing NUL included (MAX_ARG_STRLEN, 32
// pages).
inline constexpr std::size_t kMaxString = 131072;

// An Error where a variable is too long. `whose`: "rank 3 (worker 3)", or "the job".
Result<void> check_lengths(const EnvironmentChanges& variables, std::string_view whose);
// An Error where a word of a command is too long.
Result<void> check_lengths(const Argv& argv, std::string_view whose);

}  // namespace dlrun::plan
