// The command line of dlrun-agent, which launchers write. No flag means that the stream is stdin and stdout.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/types.hpp"

namespace dlrun::agent {

struct Arguments {
  std::vector<std::string> head = {};  // addresses to call back to; empty: the stream is stdin and stdout
  Port port{0};
  std::string token_file = {};  // empty: the token is in the environment
  std::string hold = {};        // the folder that this copy of dlrun lies in
};

// The text for stdout after --help or --version; unset where the arguments start an agent.
std::optional<std::string> answer_to_person(const std::vector<std::string>& words);

// `words` without the program's name. An Error (usage) names the word that is wrong.
Result<Arguments> read_arguments(const std::vector<std::string>& words);

}  // namespace dlrun::agent
