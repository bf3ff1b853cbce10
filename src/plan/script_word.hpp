// Which word of a command is a program's text for an interpreter (sh -c TEXT, python -u -c TEXT): its dollar
// signs are the interpreter's.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dlrun::plan {

// The index of the word; empty where there is none.
std::optional<std::size_t> script_word(const std::vector<std::string>& words);

}  // namespace dlrun::plan
