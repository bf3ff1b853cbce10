#include "src/plan/config_layers.hpp"

#include <fmt/core.h>

#include "src/base/json.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::plan {
namespace {

using yaml::Kind;
using yaml::Node;

Node empty_map(const std::string& source) {
  Node out;
  out.kind = Kind::map;
  out.source = source;
  return out;
}

Node section_below(std::initializer_list<std::pair<std::string, Node>> entries) {
  Node out = empty_map(kDefaultSource);
  for (const auto& [key, value] : entries) out.set(key, value);
  return out;
}

Node text(std::string value) {
  return yaml::scalar(std::move(value), kDefaultSource);
}

Node duration(Seconds value) {
  return text(fmt::format("{}s", value.count()));
}

std::string one_line(const Node& node) {
  return node.kind == Kind::scalar && node.style == yaml::Style::plain ? node.scalar
                                                                       : dlrun::to_text(yaml::to_json(node));
}

void explain_into(const Node& node, const std::string& path, std::vector<Explained>& out) {
  if (node.kind == Kind::map && !node.entries.empty()) {
    for (const auto& [key, value] : node.entries)
      explain_into(value, path.empty() ? key : path + "." + key, out);
  } else if (node.kind == Kind::list && !node.items.empty()) {
    for (std::size_t i = 0; i < node.items.size(); ++i)
      explain_into(node.items[i], fmt::format("{}[{}]", path, i), out);
  } else if (!path.empty()) {
    out.push_back({.path = path, .value = one_line(node), .source = node.source});
  }
}

}  // namespace

Node default_layer() {
  const JobSpec spec;
  return section_below(
      {{"launch",
        section_below(
            {{"via", text(spec.launch.via)},
             {"fan-out", text(std::to_string(spec.launch.fan_out))},
             {"start-timeout", duration(spec.launch.start_timeout)},
             {"setup-timeout", duration(spec.launch.setup_timeout)},
             {"grace", duration(spec.launch.grace)},
             {"lost-after", duration(spec.launch.lost_after)},
             {"retries", text(std::to_string(spec.launch.retries))},
             {"mpi", text(spec.launch.mpi)},
             {"bind", text(spec.launch.bind ? "true" : "false")},
             {"relay", text(std::string(name_of(spec.launch.relay)))},
             {"check", text(std::string(name_of(spec.launch.check)))},
             {"bad-node-memory", duration(spec.launch.bad_node_memory)},
             {"stage", text(spec.launch.stage ? "true" : "false")},
             {"ssh", section_below({{"host-keys", text(std::string(name_of(spec.launch.ssh.host_keys)))},
                                    {"connect-timeout", duration(spec.launch.ssh.connect_timeout)}})}})},
       {"checkpoint", section_below({{"every", text(spec.checkpoint.every)},
                                     {"keep", text(std::to_string(spec.checkpoint.keep))},
                                     {"request", yaml::list(spec.checkpoint.request, kDefaultSource)},
                                     {"lead", text(spec.checkpoint.lead)}})},
       {"chain", section_below({{"retries", text(std::to_string(spec.chain.retries))},
                                {"mode", text(spec.chain.mode)}})}});
}

Result<Node> merge_layers(std::vector<Node> layers) {
  Node out = empty_map("");
  for (Node& layer : layers) {
    if (layer.kind == Kind::null) continue;
    if (layer.kind != Kind::map)
      return yaml::error_at(layer, "expected a map of keys", "write it as 'framework: builtin' and so on");
    std::string source = layer.source;
    out = yaml::overlay(std::move(out), std::move(layer));
    out.source = std::move(source);  // the highest layer's place stands for the whole
  }
  return out;
}

Result<void> apply_override(Node& tree, const Override& override) {
  if (override.reading == Override::Reading::yaml)
    return yaml::set_path(tree, override.path, override.value, override.source);
  // JSON is YAML: quoted so, the text comes back as it is.
  return yaml::set_path(tree, override.path, dlrun::to_text(Json(override.value)), override.source);
}

Result<void> append_words(Node& tree, const std::vector<std::string>& words, const std::string& source) {
  if (words.empty()) return {};
  Node added = yaml::list(words, source);
  const Node* const command = tree.find("command");
  if (command != nullptr && command->kind == Kind::map)
    return yaml::error_at(*command, "command is a map, and a command follows --",
                          "command is a list of words: remove --set command.KEY=...");
  if (command != nullptr && command->kind == Kind::list) {
    Node whole = *command;
    for (Node& word : added.items) whole.items.push_back(std::move(word));
    added = std::move(whole);
  }
  tree.set("command", std::move(added));
  return {};
}

std::vector<Explained> explain(const Node& tree) {
  std::vector<Explained> out;
  explain_into(tree, "", out);
  return out;
}

}  // namespace dlrun::plan
