#include "src/record/found_provenance.hpp"

#include <vector>

#include "schedulers/hostlist/hostlist.hpp"

namespace dlrun::job {

std::optional<Json> FoundProvenance::take(const std::string& host, const Json& found) {
  const Json node = field<Json>(found, "node", "provenance").value_or(Json());
  const Json program = field<Json>(found, "program", "provenance").value_or(Json());
  const std::string text = to_text(node);
  node_of_host_[host] = text;
  const bool new_node = nodes_.emplace(text, node).second;
  const bool new_program = !program.is_null() && program != program_;
  if (new_program) program_ = program;
  if (!new_node && !new_program) return std::nullopt;
  Json event{{"event", "provenance"}, {"host", host}};
  if (new_node) event["node"] = node;
  if (new_program) event["program"] = program_;
  return event;
}

std::optional<Json> FoundProvenance::take_data(const Json& data) {
  if (data == data_) return std::nullopt;
  data_ = data;
  return Json{{"event", "provenance"}, {"data", data_}};
}

Json FoundProvenance::all() const {
  std::map<std::string, std::vector<HostName>> hosts;
  for (const auto& [host, text] : node_of_host_) hosts[text].emplace_back(host);
  Json nodes = Json::array();
  for (const auto& [text, names] : hosts) {
    Json node{{"hosts", compress_hostlist(names)}};
    if (const Json& facts = nodes_.at(text); facts.is_object()) node.update(facts);
    nodes.push_back(std::move(node));
  }
  return {
      {"nodes", nodes_.empty() ? Json(nullptr) : std::move(nodes)}, {"program", program_}, {"data", data_}};
}

}  // namespace dlrun::job
