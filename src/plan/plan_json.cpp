// The JSON form of plans and slices. Reading is strict about types and about what the rest of the program
// relies on: node indices that exist, ranks that are dense. It does not re-check what the planner decided.
#include <algorithm>
#include <array>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/json.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/plan_text.hpp"

namespace dlrun::plan {
namespace {

constexpr std::string_view kPlanSchema = "dlrun.plan/1";
constexpr std::string_view kSliceSchema = "dlrun.slice/1";
constexpr int kLargest = 10'000'000;  // no cluster has more nodes, ranks or cores

tl::unexpected<Error> bad(std::string_view where, std::string what) {
  return fail(Error{.kind = ErrorKind::input, .what = std::move(what), .where = std::string(where)});
}

template <class E, std::size_t N>
Result<E> named(const Json& object, std::string_view key, std::string_view where,
                const EnumNames<E, N>& names) {
  const auto text = TRY(field<std::string>(object, key, where));
  if (const auto value = names.value(text)) return *value;
  return bad(where, fmt::format("field '{}': '{}' is not known", key, text));
}

// Refuses 1.5 and true, which nlohmann silently converts to int.
Result<int> json_integer(const Json& object, std::string_view key, std::string_view where, int low = 0) {
  const Json value = TRY(field<Json>(object, key, where));
  if (!value.is_number_integer() || value < low || value > kLargest)
    return bad(where, fmt::format("field '{}' must be a whole number in [{}, {}], not {}", key, low, kLargest,
                                  dlrun::to_text(value).substr(0, 60)));
  return value.get<int>();
}

Result<Seconds> seconds(const Json& object, std::string_view key, std::string_view where) {
  const Json value = TRY(field<Json>(object, key, where));
  if (!value.is_number() || value.get<double>() < 0)
    return bad(where, fmt::format("field '{}' is not a number of seconds: {}", key,
                                  dlrun::to_text(value).substr(0, 60)));
  return Seconds(value.get<double>());
}

// Ranks of one node mostly stand together: [node, count] for each run keeps the slices of thousands of nodes
// small.
Json runs_of(const std::vector<int>& node_of_rank) {
  Json out = Json::array();
  for (const int node : node_of_rank) {
    if (out.empty() || out.back()[0] != node)
      out.push_back({node, 1});
    else
      out.back()[1] = out.back()[1].get<int>() + 1;
  }
  return out;
}

// [node, count], or [node, count, nodes] where so many nodes from this one on have so many ranks each.
bool is_run(const Json& item, int nodes) {
  const bool numbers =
      item.is_array() && (item.size() == 2 || item.size() == 3) &&
      std::all_of(item.begin(), item.end(), [](const Json& i) { return i.is_number_integer(); });
  return numbers && item[0] >= 0 && item[0] < nodes && item[1] > 0 && item[1] <= kLargest &&
         (item.size() == 2 || (item[2] > 0 && item[2] <= nodes - item[0].get<int>()));
}

Result<std::vector<int>> node_runs(const Json& object, std::string_view key, std::string_view where,
                                   int nodes) {
  const Json list = TRY(field<Json>(object, key, where));
  std::vector<int> out;
  if (!list.is_array()) return bad(where, fmt::format("field '{}' is not a list", key));
  for (const Json& item : list) {
    const std::size_t repeats = is_run(item, nodes) && item.size() == 3 ? item[2].get<std::size_t>() : 1;
    if (!is_run(item, nodes) || item[1].get<std::size_t>() * repeats + out.size() > kLargest)
      return bad(where, fmt::format("field '{}' has an item out of range: {}", key,
                                    dlrun::to_text(item).substr(0, 60)));
    for (std::size_t i = 0; i < repeats; ++i)
      out.insert(out.end(), item[1].get<std::size_t>(), item[0].get<int>() + static_cast<int>(i));
  }
  return out;
}

Json to_json(const PerGroupKind& numbers) {
  Json out = Json::object();
  for (const auto& [kind, name] : kGroupKinds.rows) out[std::string(name)] = numbers[kind];
  return out;
}

Result<PerGroupKind> per_group_kind(const Json& json, std::string_view where, int low) {
  PerGroupKind out;
  for (const auto& [kind, name] : kGroupKinds.rows) out[kind] = TRY(json_integer(json, name, where, low));
  return out;
}

Json to_json(const Parallel& parallel) {
  Json order = Json::array();
  for (const GroupKind kind : parallel.order) order.push_back(name_of(kind));
  Json out{{"sizes", to_json(parallel.sizes)}, {"order", std::move(order)}};
  if (parallel.sequence == SequenceParallel::on) out["sequence"] = "on";
  return out;
}

// Only jobs that ask for process groups have it.
Result<std::optional<Parallel>> parallel_from_json(const Json& plan, std::string_view where) {
  if (!plan.contains("parallel")) return std::optional<Parallel>();
  const Json json = TRY(field<Json>(plan, "parallel", where));
  Parallel out;
  out.sizes = TRY(per_group_kind(TRY(field<Json>(json, "sizes", where)), where, 1));
  for (const std::string& name : TRY(field<std::vector<std::string>>(json, "order", where))) {
    const auto kind = kGroupKinds.value(name);
    if (!kind) return bad(where, fmt::format("field 'order': '{}' is not known", name));
    out.order.push_back(*kind);
  }
  if (json.contains("sequence")) {
    const auto sequence = TRY(field<std::string>(json, "sequence", where));
    if (sequence != "on") return bad(where, fmt::format("field 'sequence': '{}' is not known", sequence));
    out.sequence = SequenceParallel::on;
  }
  return std::optional(std::move(out));
}

}  // namespace

// Without an initializer list, which allocates for every value: a large job has tens of thousands of ranks.
Json to_json(const RankPlan& rank) {
  Json cpus = nullptr;
  if (rank.cpus) cpus = {{"share", rank.cpus->share}, {"of", rank.cpus->of}};
  Json::object_t out;
  out.reserve(14);
  out.emplace_back("rank", rank.rank.get());
  out.emplace_back("role", rank.role);
  out.emplace_back("task_index", rank.task_index);
  out.emplace_back("node", rank.node.get());
  out.emplace_back("local_rank", rank.local_rank.get());
  out.emplace_back("gpus", rank.gpus ? Json(*rank.gpus) : Json(nullptr));
  out.emplace_back("visible_gpus", rank.visible_gpus ? Json(*rank.visible_gpus) : Json(nullptr));
  out.emplace_back("cpus", std::move(cpus));
  out.emplace_back("port", rank.port ? Json(*rank.port) : Json(nullptr));
  out.emplace_back("service", rank.service);
  if (rank.group_ranks) out.emplace_back("group_ranks", to_json(*rank.group_ranks));
  out.emplace_back("environment", rank.environment);
  out.emplace_back("defaults", rank.defaults);
  out.emplace_back("argv", rank.argv);
  return out;
}

namespace {

Result<std::optional<int>> port_or_nothing(const Json& json, std::string_view key, std::string_view where) {
  if (TRY(field<Json>(json, key, where)).is_null()) return std::nullopt;
  const int port = TRY(json_integer(json, key, where, 1));
  if (port > 65535) return bad(where, fmt::format("port {} does not exist", port));
  return port;
}

Result<RankPlan> rank_from_json(const Json& json, std::string_view where, int node_count) {
  RankPlan out;
  out.rank = Rank(TRY(json_integer(json, "rank", where)));
  out.role = TRY(field<std::string>(json, "role", where));
  out.task_index = TRY(json_integer(json, "task_index", where));
  out.node = NodeIndex(TRY(json_integer(json, "node", where)));
  out.local_rank = LocalRank(TRY(json_integer(json, "local_rank", where)));
  out.environment = TRY(field<EnvironmentChanges>(json, "environment", where));
  out.environment.shrink_to_fit();
  out.defaults = TRY(field<EnvironmentChanges>(json, "defaults", where));
  out.argv = TRY(field<Argv>(json, "argv", where));
  if (json.contains("group_ranks"))
    out.group_ranks = TRY(per_group_kind(TRY(field<Json>(json, "group_ranks", where)), where, 0));
  out.service = TRY(field<bool>(json, "service", where));
  if (const Json gpus = TRY(field<Json>(json, "gpus", where)); !gpus.is_null())
    out.gpus = TRY(field<std::vector<std::string>>(json, "gpus", where));
  if (const Json visible = TRY(field<Json>(json, "visible_gpus", where)); !visible.is_null())
    out.visible_gpus = TRY(field<std::vector<std::string>>(json, "visible_gpus", where));
  if (const Json cpus = TRY(field<Json>(json, "cpus", where)); !cpus.is_null()) {
    out.cpus = CpuShare{.share = TRY(json_integer(cpus, "share", where)),
                        .of = TRY(json_integer(cpus, "of", where, 1))};
    if (out.cpus->share >= out.cpus->of)
      return bad(where, fmt::format("share {} of {} does not exist", out.cpus->share, out.cpus->of));
  }
  out.port = TRY(port_or_nothing(json, "port", where));
  if (out.node.get() >= node_count)
    return bad(where, fmt::format("rank {} is on node {} of {}", out.rank, out.node, node_count));
  if (out.argv.empty()) return bad(where, fmt::format("rank {} has no command", out.rank));
  return out;
}

// {"hosts": "n[1-3]", "addresses": null or a list}, as slices have them.
Result<std::vector<NodePlan>> nodes_from_hostlist(const Json& json, std::string_view where) {
  std::vector<NodePlan> out;
  const auto hosts = TRY(expand_hostlist(TRY(field<std::string>(json, "hosts", where))));
  const Json addresses = TRY(field<Json>(json, "addresses", where));
  if (!addresses.is_null() && (!addresses.is_array() || addresses.size() != hosts.size()))
    return bad(where, "field 'addresses' is not a list with one entry per host");
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    out.push_back({.index = NodeIndex(static_cast<int>(i)), .host = hosts[i]});
    if (addresses.is_null() || addresses[i].is_null()) continue;
    if (!addresses[i].is_string()) return bad(where, "field 'addresses' has an entry that is not text");
    out.back().address = addresses[i].get<std::string>();
  }
  return out;
}

Result<std::vector<NodePlan>> nodes_from_json(const Json& json, std::string_view where) {
  std::vector<NodePlan> out;
  const Json list = TRY(field<Json>(json, "nodes", where));
  if (list.is_object()) return nodes_from_hostlist(list, where);
  if (!list.is_array()) return bad(where, "field 'nodes' is not a list");
  for (const Json& node : list) {
    out.push_back({.index = NodeIndex(TRY(json_integer(node, "index", where))),
                   .host = HostName(TRY(field<std::string>(node, "host", where)))});
    if (const Json address = TRY(field<Json>(node, "address", where)); !address.is_null())
      out.back().address = TRY(field<std::string>(node, "address", where));
    if (out.back().index.get() + 1 != static_cast<int>(out.size()))
      return bad(where, fmt::format("node {} is at position {}", out.back().index, out.size() - 1));
  }
  return out;
}

Result<Prolog> prolog_from_json(const Json& json, std::string_view where) {
  Prolog out;
  out.module_paths = TRY(field<std::vector<std::string>>(json, "module_paths", where));
  out.modules = TRY(field<std::vector<std::string>>(json, "modules", where));
  out.activate = TRY(field<std::string>(json, "activate", where));
  out.setup = TRY(field<std::vector<std::string>>(json, "setup", where));
  out.needs = TRY(field<std::vector<Argv>>(json, "needs", where));
  return out;
}

// Only jobs that stage something have it.
Result<Stage> stage_from_json(const Json& json, std::string_view where) {
  Stage out;
  if (!json.contains("stage")) return out;
  const Json stage = TRY(field<Json>(json, "stage", where));
  out.folder = TRY(field<std::string>(stage, "folder", where));
  const Json items = TRY(field<Json>(stage, "items", where));
  if (!items.is_array() || items.empty() || !out.folder.starts_with('/'))
    return bad(where, "field 'stage' has no items, or no absolute folder");
  for (const Json& item : items) out.items.push_back(TRY(stage_in_from_json(item, where)));
  return out;
}

// Only elastic jobs have it.
Result<std::optional<Elastic>> elastic_from_json(const Json& json, std::string_view where) {
  if (!json.contains("elastic")) return std::optional<Elastic>();
  const Json elastic = TRY(field<Json>(json, "elastic", where));
  return Elastic{.min_nodes = TRY(json_integer(elastic, "min_nodes", where, 1)),
                 .min_ranks = TRY(json_integer(elastic, "min_ranks", where, 1)),
                 .restarts = elastic.contains("restarts")  // plans of older versions have none
                                 ? TRY(json_integer(elastic, "restarts", where))
                                 : 0};
}

// All checks except that ranks are dense, which those of a slice are not.
Result<Plan> any_plan_from_json(const Json& json, std::string_view where) {
  Plan out;
  const auto schema = TRY(field<std::string>(json, "schema", where));
  if (schema != kPlanSchema)
    return bad(where, fmt::format("schema '{}' is not '{}': another version wrote it", schema, kPlanSchema));
  out.name = TRY(field<std::string>(json, "name", where));
  out.job_id = TRY(field<std::string>(json, "job_id", where));
  out.attempt = TRY(json_integer(json, "attempt", where, 1));
  out.framework = TRY(field<std::string>(json, "framework", where));
  out.process = TRY(named(json, "process", where, kProcessModels));
  out.mpi = TRY(named(json, "mpi", where, kMpiProtocols));
  out.working_directory = TRY(field<std::string>(json, "working_directory", where));
  out.run_directory = TRY(field<std::string>(json, "run_directory", where));
  out.stage = TRY(stage_from_json(json, where));
  out.prolog = TRY(prolog_from_json(TRY(field<Json>(json, "prolog", where)), where));
  out.environment = TRY(field<EnvironmentChanges>(json, "environment", where));
  const Json rules = TRY(field<Json>(json, "environment_rules", where));
  out.environment_rules.allow = TRY(field<std::vector<std::string>>(rules, "allow", where));
  out.environment_rules.deny = TRY(field<std::vector<std::string>>(rules, "deny", where));
  out.environment_rules.secrets = TRY(field<std::vector<std::string>>(rules, "secrets", where));
  out.interface_variables = TRY(field<EnvironmentChanges>(json, "interface_variables", where));
  const Json limits = TRY(field<Json>(json, "limits", where));
  out.limits.start_timeout = TRY(seconds(limits, "start_timeout", where));
  out.limits.setup_timeout = TRY(seconds(limits, "setup_timeout", where));
  out.limits.grace = TRY(seconds(limits, "grace", where));
  out.limits.grace_after_failure = TRY(seconds(limits, "grace_after_failure", where));
  out.limits.lost_after = TRY(seconds(limits, "lost_after", where));
  out.limits.no_output = TRY(seconds(limits, "no_output", where));
  out.limits.no_progress = TRY(seconds(limits, "no_progress", where));
  out.limits.finalize = TRY(seconds(limits, "finalize", where));
  out.elastic = TRY(elastic_from_json(json, where));
  out.parallel = TRY(parallel_from_json(json, where));
  if (json.contains("memory"))
    out.memory = TRY(memory_policy_from_json(TRY(field<Json>(json, "memory", where)), where));
  out.files = TRY(field<std::map<std::string, std::string>>(json, "files", where));
  out.checks = TRY(field<std::vector<Argv>>(json, "checks", where));
  out.hypothetical_nodes = TRY(field<bool>(json, "hypothetical_nodes", where));
  out.rendezvous_port = TRY(port_or_nothing(json, "rendezvous_port", where));
  out.nodes = TRY(nodes_from_json(json, where));
  const Json ranks = TRY(field<Json>(json, "ranks", where));
  if (!ranks.is_array()) return bad(where, "field 'ranks' is not a list");
  for (const Json& rank : ranks)
    out.ranks.push_back(TRY(rank_from_json(rank, where, static_cast<int>(out.nodes.size()))));
  return out;
}

}  // namespace

std::string_view to_text(MpiProtocol protocol) {
  return kMpiProtocols.name(protocol);
}

std::string_view to_text(ProcessModel model) {
  return kProcessModels.name(model);
}

Json json_without_ranks(const Plan& plan) {
  Json nodes = Json::array();
  for (const NodePlan& node : plan.nodes)
    nodes.push_back({{"index", node.index.get()},
                     {"host", node.host.get()},
                     {"address", node.address ? Json(*node.address) : Json(nullptr)}});
  Json out{{"schema", kPlanSchema},
           {"name", plan.name},
           {"job_id", plan.job_id},
           {"attempt", plan.attempt},
           {"framework", plan.framework},
           {"process", to_text(plan.process)},
           {"mpi", to_text(plan.mpi)},
           {"working_directory", plan.working_directory},
           {"run_directory", plan.run_directory},
           {"prolog",
            {{"module_paths", plan.prolog.module_paths},
             {"modules", plan.prolog.modules},
             {"activate", plan.prolog.activate},
             {"setup", plan.prolog.setup},
             {"needs", plan.prolog.needs}}},
           {"environment", plan.environment},
           {"environment_rules",
            {{"allow", plan.environment_rules.allow},
             {"deny", plan.environment_rules.deny},
             {"secrets", plan.environment_rules.secrets}}},
           {"interface_variables", plan.interface_variables},
           {"limits",
            {{"start_timeout", plan.limits.start_timeout.count()},
             {"setup_timeout", plan.limits.setup_timeout.count()},
             {"grace", plan.limits.grace.count()},
             {"grace_after_failure", plan.limits.grace_after_failure.count()},
             {"lost_after", plan.limits.lost_after.count()},
             {"no_output", plan.limits.no_output.count()},
             {"no_progress", plan.limits.no_progress.count()},
             {"finalize", plan.limits.finalize.count()}}},
           {"files", plan.files},
           {"checks", plan.checks},
           {"hypothetical_nodes", plan.hypothetical_nodes},
           {"rendezvous_port", plan.rendezvous_port ? Json(*plan.rendezvous_port) : Json(nullptr)},
           {"nodes", std::move(nodes)}};
  if (!plan.stage.empty()) {
    Json items = Json::array();
    for (const StageIn& item : plan.stage.items) items.push_back(to_json(item));
    out["stage"] = {{"folder", plan.stage.folder}, {"items", std::move(items)}};
  }
  if (plan.memory.is_set()) out["memory"] = to_json(plan.memory);
  if (plan.elastic)
    out["elastic"] = {{"min_nodes", plan.elastic->min_nodes},
                      {"min_ranks", plan.elastic->min_ranks},
                      {"restarts", plan.elastic->restarts}};
  if (plan.parallel) out["parallel"] = to_json(*plan.parallel);
  out["ranks"] = Json::array();
  return out;
}

namespace {

void append_indented(std::string& out, std::string_view text, std::string_view indent) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    out.append(indent).append(text.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace

Json to_json(const Plan& plan) {
  Json out = json_without_ranks(plan);
  Json::array_t ranks;
  ranks.reserve(plan.ranks.size());
  for (const RankPlan& rank : plan.ranks) ranks.push_back(to_json(rank));
  out["ranks"] = std::move(ranks);
  return out;
}

std::string to_pretty_text(const Plan& plan) {
  std::string out = dlrun::to_pretty_text(json_without_ranks(plan));
  if (plan.ranks.empty()) return out;
  out.resize(out.size() - std::string_view("]\n}\n").size());
  for (const RankPlan& rank : plan.ranks) {
    const std::string text = dlrun::to_pretty_text(to_json(rank));
    out += rank.rank == plan.ranks.front().rank ? "\n" : ",\n";
    append_indented(out, std::string_view(text).substr(0, text.size() - 1), "    ");
  }
  return out + "\n  ]\n}\n";
}

Result<Plan> plan_from_json(const Json& json) {
  Plan plan = TRY(any_plan_from_json(json, "plan"));
  for (std::size_t i = 0; i < plan.ranks.size(); ++i)
    if (plan.ranks[i].rank.get() != static_cast<int>(i))
      return bad("plan", fmt::format("rank {} is at position {}", plan.ranks[i].rank, i));
  return plan;
}

Json to_json(const NodeSlice& slice) {
  return {{"schema", kSliceSchema},
          {"node", slice.node.get()},
          {"node_of_rank", runs_of(slice.node_of_rank)},
          {"plan", to_json(slice.plan)}};
}

Result<NodeSlice> slice_from_json(const Json& json) {
  constexpr std::string_view where = "slice";
  NodeSlice out;
  const auto schema = TRY(field<std::string>(json, "schema", where));
  if (schema != kSliceSchema)
    return bad(where, fmt::format("schema '{}' is not '{}': another version wrote it", schema, kSliceSchema));
  out.plan = TRY(any_plan_from_json(TRY(field<Json>(json, "plan", where)), where));
  const int nodes = static_cast<int>(out.plan.nodes.size());
  out.node = NodeIndex(TRY(json_integer(json, "node", where)));
  out.node_of_rank = TRY(node_runs(json, "node_of_rank", where, nodes));
  if (out.node.get() >= nodes) return bad(where, fmt::format("node {} of {} nodes", out.node, nodes));
  for (const RankPlan& rank : out.plan.ranks)
    if (rank.node != out.node || rank.rank.get() >= out.world_size())
      return bad(where, fmt::format("rank {} does not belong to node {}", rank.rank, out.node));
  return out;
}

}  // namespace dlrun::plan
