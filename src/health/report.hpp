// Report: what the checks found on each node, and the judgement of all answers that leads to it. A node is
// bad where a finding says so, or where it has no agent. The JSON form is dlrun.doctor/1.
#pragma once

#include <string>
#include <vector>

#include "src/health/check.hpp"

namespace dlrun::health {

/// What one node has answered.
// What a fault is of: the node, or the installation of dlrun there, which says nothing of the node.
enum class FaultOf { node, installation };

struct NodeAnswers {
  std::string host;
  std::string no_agent = {};  // why it has none; empty: it has one
  FaultOf fault_of = FaultOf::node;
  Json values = Json::object();  // by the name of the check
};

struct Finding {
  std::string check;
  State state = State::warning;
  std::string text;
};

struct NodeReport {
  std::string host;
  State state = State::good;
  FaultOf fault_of = FaultOf::node;
  std::vector<Finding> findings = {};
  Json values = Json::object();
  std::string forgotten = {};  // why it was left out of jobs until now
};

struct Report {
  Level level = Level::quick;
  std::string directory = {};
  Seconds took{0};
  std::vector<NodeReport> nodes = {};

  std::vector<std::string> bad_hosts() const;
  std::size_t count(State state) const;
};

/// Pure: the nodes of the report are those of the answers, in their order.
Report judge(Level level, std::string directory, const std::vector<NodeAnswers>& answers);

/// "files: rename: Operation not permitted; clock: its clock is 7.0s ahead": those of this state.
std::string text_of(const NodeReport& node, State state);

Json to_json(const Report& report);

}  // namespace dlrun::health
