// dlrun-train --evaluate, --predict and --export: what is done with a model that was trained. They need its
// checkpoint alone, run on the CPU, and print JSON.
#pragma once

#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::runtime {

/// Whether the words, behind the program's name, begin one of the three.
bool is_model_command(const std::vector<std::string>& words);
/// Does it, and returns what is to be printed.
Result<std::string> run_model_command(const std::vector<std::string>& words);

}  // namespace dlrun::runtime
