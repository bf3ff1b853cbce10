#include "src/plan/parallel_spec.hpp"

#include <algorithm>
#include <span>

#include "src/plan/other_keys.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

constexpr std::int64_t kMaxSize = 100'000;

// Each at most once.
Result<GroupOrder> read_kinds(const Node& node, const std::string& path, const GroupOrder& allowed) {
  std::vector<std::string> names;
  for (const GroupKind kind : allowed) names.emplace_back(name_of(kind));
  if (node.kind == yaml::Kind::map)
    return yaml::error_at(node, fmt::format("{} must be a list", path), "valid names: " + join(names, ", "));
  GroupOrder out;
  for (const Node& item : node.kind == yaml::Kind::list ? std::span(node.items) : std::span(&node, 1)) {
    const GroupKind kind = allowed[TRY(yaml::as_choice(item, path, names))];
    if (std::find(out.begin(), out.end(), kind) != out.end())
      return yaml::error_at(item, fmt::format("{}: '{}' is there twice", path, name_of(kind)));
    out.push_back(kind);
  }
  return out;
}

Result<SequenceParallel> read_sequence(Fields& fields) {
  static const std::vector<std::string> choices{"off", "on"};
  return TRY(fields.choice_or("sequence", 0, choices)) == 1 ? SequenceParallel::on : SequenceParallel::off;
}

Result<int> read_size(Fields& fields, GroupKind kind) {
  return static_cast<int>(TRY(fields.integer_or(name_of(kind), 1, 1, kMaxSize)));
}

// Of every kind that divides the ranks its place in the order must be known.
Result<void> check_order(const Node& node, const ParallelSpec& spec) {
  const std::pair<GroupKind, int> sizes[]{{GroupKind::tensor, spec.tensor},
                                          {GroupKind::context, spec.context},
                                          {GroupKind::expert, spec.expert},
                                          {GroupKind::pipeline, spec.pipeline},
                                          {GroupKind::data, 0}};
  for (const auto& [kind, size] : sizes) {
    if (size == 1 || std::find(spec.order.begin(), spec.order.end(), kind) != spec.order.end()) continue;
    return yaml::error_at(
        node,
        size == 0
            ? std::string("parallel.order has no 'data', and data parallelism takes the remaining ranks")
            : fmt::format("parallel.order has no '{}', and parallel.{} is {}", name_of(kind), name_of(kind),
                          size),
        "for example: [tensor, context, expert, data, pipeline]; the first varies fastest");
  }
  return {};
}

}  // namespace

Result<std::optional<ParallelSpec>> read_parallel(Fields& job) {
  const Node* node = job.find("parallel");
  if (node == nullptr) return std::optional<ParallelSpec>();
  Fields fields = TRY(Fields::of(*node, "parallel"));
  fields.hint_at(other_keys());
  ParallelSpec out;
  out.tensor = TRY(read_size(fields, GroupKind::tensor));
  out.pipeline = TRY(read_size(fields, GroupKind::pipeline));
  out.context = TRY(read_size(fields, GroupKind::context));
  out.expert = TRY(read_size(fields, GroupKind::expert));
  out.sequence = TRY(read_sequence(fields));
  const Node *order = fields.find("order"), *within = fields.find("within-node");
  if (order != nullptr) out.order = TRY(read_kinds(*order, "parallel.order", kMegatronOrder));
  if (within != nullptr) out.within_node = TRY(read_kinds(*within, "parallel.within-node", kMegatronOrder));
  TRY(fields.finish());
  if (std::int64_t{out.tensor} * out.context > kMaxSize ||
      std::int64_t{out.tensor} * out.context * out.pipeline > kMaxSize)
    return yaml::error_at(
        *node, fmt::format("parallel: tensor {} x context {} x pipeline {} is more than {} ranks", out.tensor,
                           out.context, out.pipeline, kMaxSize));
  if (order != nullptr) TRY(check_order(*order, out));
  return std::optional(std::move(out));
}

Result<std::optional<AdapterParallel>> read_adapter_parallel(Fields& adapter) {
  const Node* node = adapter.find("parallel");
  if (node == nullptr) return std::optional<AdapterParallel>();
  Fields fields = TRY(Fields::of(*node, "parallel"));
  AdapterParallel out;
  const Node *groups = fields.find("groups"), *orders = fields.find("orders");
  out.sequence = TRY(read_sequence(fields));
  TRY(fields.finish());
  static const GroupOrder beside_data{GroupKind::tensor, GroupKind::context, GroupKind::expert,
                                      GroupKind::pipeline};
  if (groups == nullptr) return yaml::error_at(*node, "'parallel.groups' is missing");
  out.groups = TRY(read_kinds(*groups, "parallel.groups", beside_data));
  if (orders != nullptr && orders->kind != yaml::Kind::list)
    return yaml::error_at(*orders, "parallel.orders must be a list of lists");
  if (orders != nullptr)
    for (const Node& order : orders->items)
      out.orders.push_back(TRY(read_kinds(order, "parallel.orders", kMegatronOrder)));
  return std::optional(std::move(out));
}

}  // namespace dlrun::plan
