// Secrets in what users write as text: NAME=VALUE, --name=VALUE and --name VALUE in commands and in shell
// lines, where the name is a secret's (secrets.hpp). For showing and keeping only: what runs has the values.
// A value that is a reference ($OTHER, $(cat file)) is no secret, nor is a count of tokens; whatever else a
// name makes suspect is hidden, since one shown too much cannot be taken back. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/types.hpp"

namespace dlrun::plan {

/// Whether the name is a secret's and the value none of those that such names have otherwise: a count of
/// tokens.
bool is_secret_value(std::string_view name, std::string_view value, const std::vector<std::string>& further);

// A command, word by word.
Argv without_secret_values(Argv argv, const std::vector<std::string>& further);
// A line of shell.
std::string without_secret_values(std::string_view line, const std::vector<std::string>& further);

}  // namespace dlrun::plan
