// The section resources: what the job asks of the scheduler.
#include <algorithm>
#include <array>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/plan/job_sections.hpp"
#include "src/plan/node_range.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

constexpr int kMaxNodes = 1'000'000;
constexpr std::uint64_t kMinMemory = 1 << 20;

Result<Seconds> read_walltime(const Node& node) {
  const std::string text = TRY(yaml::as_text(node, "resources.walltime"));
  auto out = parse_time_limit(text);
  if (!out) return yaml::error_at(node, "resources.walltime: " + out.error().what, out.error().hint);
  return out;
}

Result<NodeDemand> read_node_demand(Fields& fields) {
  NodeDemand out;
  if (fields.has("memory")) out.memory = TRY(fields.size_or("memory", 0));
  out.gpu_type = TRY(fields.text_or("gpu-type", ""));
  out.constraint = TRY(fields.text_or("constraint", ""));
  out.exclusive = TRY(fields.bool_or("exclusive", false));
  if (out.memory && *out.memory < kMinMemory)
    return yaml::error_at(*fields.find("memory"), "resources.memory must be at least 1MiB");
  const bool gpus = fields.has("gpus-per-node");
  if (!out.gpu_type.empty() && !gpus)
    return yaml::error_at(*fields.find("gpu-type"), "resources.gpu-type needs resources.gpus-per-node");
  return out;
}

Result<NodeChunk> read_chunk(Fields fields) {
  NodeChunk out;
  out.nodes = static_cast<int>(TRY(fields.integer_or("nodes", 1, 1, kMaxNodes)));
  out.cpus = TRY(optional_integer(fields, "cpus", 1, 65536));
  out.gpus = TRY(optional_integer(fields, "gpus", 0, 1024));
  if (fields.has("memory")) out.memory = TRY(fields.size_or("memory", 0));
  TRY(fields.finish());
  return out;
}

// A number, or a range.
Result<void> read_nodes(Fields& fields, Resources& out) {
  const Node* node = fields.find("nodes");
  if (node == nullptr || !is_node_range(*node)) {
    out.nodes = TRY(optional_integer(fields, "nodes", 1, kMaxNodes));
    return {};
  }
  const NodeRange range = TRY(read_node_range(*node, kMaxNodes));
  out.nodes = range.most;
  if (range.least < range.most) out.min_nodes = range.least;
  return {};
}

// Unlike nodes. How many there are in all is then known.
Result<void> read_chunks(Fields& fields, Resources& out) {
  const Node* list = fields.find("chunks");
  if (list == nullptr) return {};
  if (list->kind != yaml::Kind::list || list->items.empty())
    return yaml::error_at(*list, "resources.chunks must be a list of maps",
                          "write it as [{nodes: 1, memory: 256GiB}, {nodes: 4, gpus: 8}]");
  int nodes = 0;
  for (const Node& item : list->items) {
    out.chunks.push_back(
        TRY(read_chunk(TRY(Fields::of(item, fmt::format("resources.chunks[{}]", out.chunks.size()))))));
    nodes += out.chunks.back().nodes;
  }
  if (out.min_nodes)
    return yaml::error_at(*list,
                          "resources.chunks has a fixed number of nodes, and resources.nodes is a range",
                          "remove one of the two");
  if (out.nodes && *out.nodes != nodes)
    return yaml::error_at(
        *list, fmt::format("resources.chunks has {} nodes, and resources.nodes is {}", nodes, *out.nodes));
  out.nodes = nodes;
  return {};
}

// When the scheduler writes a mail.
Result<std::vector<std::string>> read_mail_events(Fields& fields) {
  static const std::array<std::string, 3> events{"begin", "end", "fail"};
  if (!fields.has("mail-events")) return std::vector<std::string>{"end", "fail"};
  std::vector<std::string> out = TRY(fields.text_list("mail-events"));
  for (const std::string& event : out)
    if (std::find(events.begin(), events.end(), event) == events.end())
      return yaml::error_at(*fields.find("mail-events"),
                            fmt::format("resources.mail-events: '{}' is not known", event),
                            did_you_mean(event, events));
  return out;
}

}  // namespace

Result<Resources> read_resources(yaml::Fields fields) {
  Resources out;
  TRY(read_nodes(fields, out));
  out.gpus_per_node = TRY(optional_integer(fields, "gpus-per-node", 0, 1024));
  out.tasks_per_node = TRY(optional_integer(fields, "tasks-per-node", 1, kMaxTasks));
  out.cpus_per_task = TRY(optional_integer(fields, "cpus-per-task", 1, 65536));
  if (const yaml::Node* walltime = fields.find("walltime")) out.walltime = TRY(read_walltime(*walltime));
  out.queue = TRY(fields.text_or("queue", ""));
  out.account = TRY(fields.text_or("account", ""));
  out.node = TRY(read_node_demand(fields));
  TRY(read_chunks(fields, out));
  out.qos = TRY(fields.text_or("qos", ""));
  out.mail = TRY(fields.text_or("mail", ""));
  if (!out.mail.empty())
    out.mail_events = TRY(read_mail_events(fields));
  else if (const yaml::Node* events = fields.find("mail-events"))
    return yaml::error_at(*events, "resources.mail-events needs resources.mail");
  out.extra = TRY(fields.text_list("extra"));
  TRY(fields.finish());
  for (const std::string_view key : {"queue", "account", "gpu-type", "constraint", "qos", "mail"})
    if (const yaml::Node* node = fields.find(key)) TRY(check_single_line(*node, fields.path(key)));
  if (out.walltime && out.walltime->count() < 1)
    return yaml::error_at(*fields.find("walltime"), "resources.walltime must be at least one second");
  return out;
}

}  // namespace dlrun::plan
