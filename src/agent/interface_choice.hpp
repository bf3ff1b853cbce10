// Which of this node's network interfaces reaches the others, found by reaching them. A peer that refuses a
// connection has been reached. It never guesses: where nothing answers, or peers are behind different
// interfaces, there is no choice, and libraries choose as they always do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"

namespace dlrun::agent {

struct InterfaceChoice {
  std::optional<std::string> name;
  std::string why_not = {};  // for the log
};

// `peers` are host names or addresses; each of their addresses gets at most `timeout` to answer.
InterfaceChoice interface_towards(const std::vector<std::string>& peers, Seconds timeout);

}  // namespace dlrun::agent
