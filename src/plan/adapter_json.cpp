// An adapter as JSON: what it sets, with the names of facts as they stand in its file and what it extends
// filled in.
#include "src/plan/adapter.hpp"

namespace dlrun::plan {
namespace {

Json variables_json(const std::vector<AdapterVariable>& variables) {
  Json out = Json::object();
  for (const AdapterVariable& variable : variables) {
    const std::string value =
        variable.text ? variable.text->text() : "{{" + variable.json_fact + "}} as JSON";
    out[variable.name] = value;
    if (!variable.condition.empty()) out[variable.name] = Json{{"value", value}, {"if", variable.condition}};
  }
  return out;
}

Json words_json(const std::vector<AdapterWord>& words) {
  Json out = Json::array();
  for (const AdapterWord& word : words) {
    if (word.condition.empty() && word.exception.empty()) {
      out.push_back(word.text.text());
      continue;
    }
    Json entry{{"value", word.text.text()}};
    if (!word.condition.empty()) entry["if"] = word.condition;
    if (!word.exception.empty()) entry["unless"] = word.exception;
    out.push_back(std::move(entry));
  }
  return out;
}

std::string default_text(const RoleKind& kind) {
  switch (kind.fallback) {
    case RoleDefault::absent:
      return "none unless the job names it";
    case RoleDefault::count:
      return fmt::format("{} in the job", kind.count);
    case RoleDefault::tasks_per_node:
      return "tasks-per-node";
    case RoleDefault::node:
      return "one per node";
    case RoleDefault::other_nodes:
      return "one on every node without a role before it";
  }
  return {};
}

Json kinds_json(const GroupOrder& kinds) {
  Json out = Json::array();
  for (const GroupKind kind : kinds) out.push_back(name_of(kind));
  return out;
}

Json parallel_json(const std::optional<AdapterParallel>& parallel) {
  if (!parallel) return nullptr;
  Json orders = Json::array();
  for (const GroupOrder& order : parallel->orders) orders.push_back(kinds_json(order));
  return {{"groups", kinds_json(parallel->groups)},
          {"orders", std::move(orders)},
          {"sequence", parallel->sequence == SequenceParallel::on ? "on" : "off"}};
}

Json role_json(const RoleKind& kind) {
  Json out{
      {"name", kind.name}, {"tasks", default_text(kind)}, {"service", kind.service}, {"light", kind.light}};
  if (kind.gpus) out["gpus"] = *kind.gpus;
  if (kind.port) out["port"] = *kind.port;
  if (kind.most) out["most"] = *kind.most;
  if (!kind.command.empty()) out["command"] = words_json(kind.command);
  if (!kind.variables.empty()) out["env"] = variables_json(kind.variables);
  return out;
}

}  // namespace

Json to_json(const Adapter& adapter) {
  Json roles = Json::array(), files = Json::object();
  for (const RoleKind& kind : adapter.roles) roles.push_back(role_json(kind));
  for (const auto& [name, text] : adapter.files) files[name] = text.text();
  return {{"name", adapter.name},
          {"summary", adapter.summary},
          {"source", adapter.source},
          {"process", to_text(adapter.process)},
          {"mpi", adapter.mpi},
          {"roles", std::move(roles)},
          {"env", variables_json(adapter.variables)},
          {"defaults", variables_json(adapter.defaults)},
          {"prefix", words_json(adapter.prefix)},
          {"command", words_json(adapter.command)},
          {"suffix", words_json(adapter.suffix)},
          {"files", std::move(files)},
          {"needs",
           {{"programs", adapter.needs.programs},
            {"variables", adapter.needs.variables},
            {"modules", adapter.needs.modules},
            {"facts", adapter.needs.facts}}},
          {"interfaces", adapter.interfaces},
          {"gpu_view", to_text(adapter.gpu_view)},
          {"reserve_cpus", adapter.reserve_cpus},
          {"parallel", parallel_json(adapter.parallel)}};
}

}  // namespace dlrun::plan
