#include "src/health/report.hpp"

#include <algorithm>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

void add(NodeReport& node, std::string_view check, State state, std::string text) {
  node.state = std::max(node.state, state);
  node.findings.push_back({std::string(check), state, std::move(text)});
}

// What the node answered to this check; unset where that is no answer, which is a finding.
std::optional<Sample> sample_of(const Check& check, std::size_t index, NodeReport& node) {
  const auto found = node.values.find(std::string(check.name));
  if (found == node.values.end() || !found->is_object()) return std::nullopt;
  const std::string error = text_of(*found, "error");
  if (error.empty()) return Sample{index, node.host, *found};
  add(node, check.name, check.without_answer, error);
  return std::nullopt;
}

void judge_check(const Check& check, Report& report) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < report.nodes.size(); ++i)
    if (auto sample = sample_of(check, i, report.nodes[i])) samples.push_back(std::move(*sample));
  for (Found& found : check.judge(samples))
    add(report.nodes[found.node], check.name, found.state, std::move(found.text));
}

Json to_json(const NodeReport& node) {
  Json findings = Json::array();
  for (const Finding& finding : node.findings)
    findings.push_back(
        {{"check", finding.check}, {"state", kStates.name(finding.state)}, {"text", finding.text}});
  return {{"host", node.host},
          {"state", kStates.name(node.state)},
          {"findings", std::move(findings)},
          {"forgotten", node.forgotten.empty() ? Json(nullptr) : Json(node.forgotten)},
          {"values", node.values}};
}

}  // namespace

std::vector<std::string> Report::bad_hosts() const {
  std::vector<std::string> out;
  for (const NodeReport& node : nodes)
    if (node.state == State::bad) out.push_back(node.host);
  return out;
}

std::size_t Report::count(State state) const {
  return static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(), [&](const NodeReport& node) { return node.state == state; }));
}

Report judge(Level level, std::string directory, const std::vector<NodeAnswers>& answers) {
  Report out{.level = level, .directory = std::move(directory), .nodes = {}};
  for (const NodeAnswers& node : answers) {
    out.nodes.push_back({.host = node.host, .fault_of = node.fault_of, .values = node.values});
    if (!node.no_agent.empty()) add(out.nodes.back(), "agent", State::bad, node.no_agent);
  }
  for (const Check& check : checks()) judge_check(check, out);
  return out;
}

std::string text_of(const NodeReport& node, State state) {
  std::vector<std::string> out;
  for (const Finding& finding : node.findings)
    if (finding.state == state) out.push_back(finding.check + ": " + finding.text);
  return join(out, "; ");
}

Json to_json(const Report& report) {
  Json nodes = Json::array();
  for (const NodeReport& node : report.nodes) nodes.push_back(to_json(node));
  return {{"schema", "dlrun.doctor/1"},        {"level", kLevels.name(report.level)},
          {"directory", report.directory},     {"seconds", report.took.count()},
          {"good", report.count(State::good)}, {"warning", report.count(State::warning)},
          {"bad", report.count(State::bad)},   {"nodes", std::move(nodes)}};
}

}  // namespace dlrun::health
