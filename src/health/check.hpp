// Check: one question about the nodes of a job, before ranks run on them: what is measured on each node, and
// what all answers together mean. Each check is a file in checks/ and a row in checks.cpp. What it measures
// is an object of numbers and texts; `error` in it says why it could not be measured. The judgement is pure:
// it sees the answers of all nodes, since most faults show only beside nodes that have none. A check changes
// nothing on a node and leaves nothing there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/enum_names.hpp"
#include "src/base/environment.hpp"
#include "src/base/json.hpp"

namespace dlrun::health {

enum class Level { quick, full };
inline constexpr auto kLevels = enum_names<Level>({{Level::quick, "quick"}, {Level::full, "full"}});

enum class State { good, warning, bad };
inline constexpr auto kStates =
    enum_names<State>({{State::good, "good"}, {State::warning, "warning"}, {State::bad, "bad"}});

/// What every node is asked.
struct Question {
  Level level = Level::quick;
  std::string directory = {};           // whose file system is tried
  std::vector<std::string> names = {};  // of the nodes, as they are to reach each other
  Environment environment = {};         // of the node's agent
};

/// How long a node may take for all of it. What has not answered by then hangs.
constexpr Seconds limit_of(Level level) {
  return level == Level::quick ? Seconds(5) : Seconds(20);
}

/// One node's answer to a check.
struct Sample {
  std::size_t node = 0;
  std::string host = {};
  Json values = Json::object();
};
struct Found {
  std::size_t node = 0;
  State state = State::warning;
  std::string text;
};

struct Check {
  std::string_view name;
  Json (*measure)(const Question&) = nullptr;  // on the node; unset: the head measures it (checker.hpp)
  std::vector<Found> (*judge)(const std::vector<Sample>&) = nullptr;
  State without_answer = State::warning;  // of a node that could not measure it
};

/// All of them, in the order in which people see them.
const std::vector<Check>& checks();

}  // namespace dlrun::health
