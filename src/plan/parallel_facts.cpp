#include "src/plan/parallel_facts.hpp"

#include <algorithm>

namespace dlrun::plan {
namespace {

std::string fact_name(std::string_view before, GroupKind kind, std::string_view after) {
  return fmt::format("{}{}{}", before, name_of(kind), after);
}

// DLRUN_EXPERT_DATA_SIZE
std::string variable_name(GroupKind kind, std::string_view what) {
  std::string out = fmt::format("DLRUN_{}_{}", name_of(kind), what);
  for (char& c : out) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

Json groups_json(const Parallel& parallel) {
  Json out = Json::object();
  for (const auto& [kind, name] : kGroupKinds.rows) out[std::string(name)] = groups(parallel, kind);
  return out;
}

// Position in the order.
auto place(const Parallel& parallel, GroupKind kind) {
  return std::find(parallel.order.begin(), parallel.order.end(), kind);
}

}  // namespace

void add_parallel_facts(Facts& facts, const Plan& plan) {
  const auto& parallel = plan.parallel;
  for (const auto& [kind, name] : kGroupKinds.rows)
    facts[fact_name("parallel.", kind, "")] = parallel ? Json(parallel->sizes[kind]) : Json(nullptr);
  if (parallel && parallel->sizes[GroupKind::expert] == 1) facts["parallel.expert"] = nullptr;
  facts["parallel.sequence"] =
      parallel && parallel->sequence == SequenceParallel::on ? Json("on") : Json(nullptr);
  facts["parallel.groups"] = parallel ? groups_json(*parallel) : Json(nullptr);
  facts["parallel.pipeline-first"] =
      parallel && place(*parallel, GroupKind::pipeline) < place(*parallel, GroupKind::data) ? Json("true")
                                                                                            : Json(nullptr);
  Json shape = Json::array(), names = Json::array();
  if (parallel)
    for (const auto& [kind, size] : mesh(*parallel)) shape.push_back(size), names.push_back(name_of(kind));
  facts["parallel.mesh-shape"] = parallel ? std::move(shape) : Json(nullptr);
  facts["parallel.mesh-names"] = parallel ? std::move(names) : Json(nullptr);
}

void set_parallel_facts(Facts& facts, const RankPlan& rank) {
  for (const auto& [kind, name] : kGroupKinds.rows)
    facts[fact_name("rank.", kind, "-index")] =
        rank.group_ranks ? Json((*rank.group_ranks)[kind]) : Json(nullptr);
}

EnvironmentChanges parallel_variables(const Parallel& parallel) {
  EnvironmentChanges out;
  for (const auto& [kind, name] : kGroupKinds.rows)
    out[variable_name(kind, "SIZE")] = std::to_string(parallel.sizes[kind]);
  std::string shape, names;
  for (const auto& [kind, size] : mesh(parallel)) {
    shape += fmt::format("{}{}", shape.empty() ? "" : ",", size);
    names += fmt::format("{}{}", names.empty() ? "" : ",", name_of(kind));
  }
  if (parallel.sequence == SequenceParallel::on) out["DLRUN_SEQUENCE_PARALLEL"] = "on";
  out["DLRUN_MESH_SHAPE"] = shape;
  out["DLRUN_MESH_NAMES"] = names;
  return out;
}

EnvironmentChanges parallel_variables(const PerGroupKind& group_ranks) {
  EnvironmentChanges out;
  for (const auto& [kind, name] : kGroupKinds.rows)
    out[variable_name(kind, "RANK")] = std::to_string(group_ranks[kind]);
  return out;
}

}  // namespace dlrun::plan
