// Reads the merged tree into a JobSpec, section by section. Each function below reads one map and knows all
// its keys; what a key means is decided later, by the planner.
#include "src/plan/job_spec.hpp"

#include <algorithm>
#include <array>

#include "src/base/fields.hpp"
#include "src/base/quote.hpp"
#include "src/base/split_words.hpp"
#include "src/base/strings.hpp"
#include "src/plan/config_layers.hpp"
#include "src/plan/enum_choice.hpp"
#include "src/plan/job_sections.hpp"
#include "src/plan/node_range.hpp"
#include "src/plan/other_keys.hpp"
#include "src/plan/parallel_spec.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

Result<RoleSpec> read_role(std::string name, Fields fields) {
  RoleSpec out;
  out.name = std::move(name);
  out.count = TRY(optional_integer(fields, "count", 1, kMaxTasks));
  out.per_node = TRY(optional_integer(fields, "per-node", 1, kMaxTasks));
  out.gpus = TRY(optional_integer(fields, "gpus", 0, 1024));
  out.port = TRY(optional_integer(fields, "port", 1024, 65535));
  if (fields.has("placement"))
    out.placement = TRY(enum_or(fields, "placement", Placement::shared, kPlacements));
  TRY(fields.finish());
  if (out.count && out.per_node)
    return yaml::error_at(fields.node(),
                          fmt::format("roles.{} takes either 'count' or 'per-node', not both", out.name));
  return out;
}

Result<std::vector<RoleSpec>> read_roles(Fields fields) {
  std::vector<RoleSpec> out;
  for (const auto& [name, value] : fields.node().entries) {
    fields.known(name);
    if (as_job_name(name) != name)
      return yaml::error_at(value, fmt::format("'{}' is not a valid role name", name),
                            "use letters, digits, '-', '_' and '.'");
    out.push_back(TRY(read_role(name, TRY(Fields::of(value, fields.path(name))))));
  }
  return out;
}

// command: python train.py --lr 0.1
Result<Argv> words_of_text(const Node& node) {
  auto words = split_words(node.scalar);
  if (!words) return yaml::error_at(node, "command: " + words.error().what, words.error().hint);
  if (words->empty() || words->front().empty())
    return yaml::error_at(node, fmt::format("command has no program: '{}'", node.scalar));
  return words;
}

Result<Argv> read_command(const Node* node) {
  if (node == nullptr) return Argv{};
  if (node->kind == yaml::Kind::scalar) return words_of_text(*node);
  if (node->kind != yaml::Kind::list || node->items.empty())
    return yaml::error_at(*node, "command must be a list of words", "write it as [python, train.py]");
  Argv words = TRY(yaml::as_text_list(*node, "command"));
  if (words.front().empty()) return yaml::error_at(node->items.front(), "command has no program: ''");
  return words;
}

Result<void> check_request(const Node& node, const std::string& text) {
  static const std::array<std::string, 6> signals{"signal:TERM", "signal:INT", "signal:USR1",
                                                  "signal:USR2", "signal:HUP", "signal:CONT"};
  if (text == "control" || text == "file") return {};
  if (std::find(signals.begin(), signals.end(), text) != signals.end()) return {};
  return yaml::error_at(node, fmt::format("checkpoint.request: '{}' is not known", text),
                        "valid names: control, file, " + join(signals, ", "));
}

Result<CheckpointSpec> read_checkpoint(Fields fields, const std::filesystem::path& base) {
  CheckpointSpec out;
  out.dir = TRY(fields.text_or("dir", ""));
  if (!out.dir.empty()) out.dir = (base / out.dir).lexically_normal().string();
  out.files = TRY(fields.text_or("files", ""));
  if (!out.files.empty()) out.files = (base / out.files).lexically_normal().string();
  out.every = TRY(fields.text_or("every", out.every));
  out.keep = static_cast<int>(TRY(fields.integer_or("keep", out.keep, 1, 100000)));
  if (fields.has("request")) out.request = TRY(fields.text_list("request"));
  out.lead = TRY(fields.text_or("lead", out.lead));
  TRY(fields.finish());
  if (const Node* every = fields.find("every")) TRY(yaml::as_interval(*every, "checkpoint.every"));
  if (const Node* requests = fields.find("request"))
    for (const std::string& request : out.request) TRY(check_request(*requests, request));
  if (out.lead != "auto") TRY(yaml::as_duration(*fields.find("lead"), "checkpoint.lead"));
  return out;
}

Result<ChainSpec> read_chain(Fields fields) {
  ChainSpec out;
  out.max_links = TRY(optional_integer(fields, "max-links", 1, 100000));
  out.retries = static_cast<int>(TRY(fields.integer_or("retries", out.retries, 0, 1000)));
  static const std::array<std::string, 3> modes{"resubmit", "requeue", "presubmit"};
  out.mode = TRY(choice(fields, "mode", out.mode, modes));
  if (fields.has("mtbf")) out.mtbf = TRY(fields.duration_or("mtbf", Seconds(0)));
  TRY(fields.finish());
  if (out.mtbf && out.mtbf->count() <= 0)
    return yaml::error_at(*fields.find("mtbf"), "chain.mtbf must be longer than 0s");
  return out;
}

Result<std::optional<Elastic>> read_elastic(Fields& root) {
  const Node* node = root.find("elastic");
  if (node == nullptr) return std::optional<Elastic>();
  Fields fields = TRY(Fields::of(*node, "elastic"));
  Elastic out;
  out.min_nodes = static_cast<int>(TRY(fields.integer_or("min-nodes", out.min_nodes, 1, 1 << 20)));
  out.min_ranks = static_cast<int>(TRY(fields.integer_or("min-ranks", out.min_ranks, 1, 1 << 20)));
  out.restarts = static_cast<int>(TRY(fields.integer_or("restarts", out.restarts, 0, 1000)));
  TRY(fields.finish());
  return std::optional(out);
}

// Only our own trainer can go on without a rank, and only where the shards of its batch can move.
Result<void> check_elastic(Fields& root, JobSpec& spec) {
  if (!spec.elastic) return {};
  const Node& node = *root.find("elastic");
  if (spec.framework != "builtin")
    return yaml::error_at(node, fmt::format("'elastic' needs framework: builtin, not {}", spec.framework),
                          "launch.retries starts all ranks again, from the last checkpoint");
  if (spec.launch.mpi != "auto" && spec.launch.mpi != "none")
    return yaml::error_at(
        node,
        fmt::format("'elastic' connects ranks over dlrun's own links, and launch.mpi is {}", spec.launch.mpi),
        "remove launch.mpi, or elastic: an MPI ends with its first lost rank");
  if (spec.environment.set.contains("DLRUN_COMM"))
    return yaml::error_at(
        node, "'elastic' connects ranks over dlrun's own links, and environment.set has DLRUN_COMM",
        "remove one of the two");
  if (spec.train.find("benchmark") != nullptr)
    return yaml::error_at(
        node, "'elastic' and train.benchmark are both set: a benchmark measures the ranks that it began with",
        "remove one of the two");
  if (spec.parallel && (spec.parallel->tensor > 1 || spec.parallel->pipeline > 1))
    return yaml::error_at(
        node,
        fmt::format("'elastic' and parallel.{} are both set: a lost rank takes its part of the model with it",
                    spec.parallel->tensor > 1 ? "tensor" : "pipeline"),
        "remove one of the two");
  const yaml::Node* const optimizer = spec.train.find("optimizer");
  const yaml::Node* const state = optimizer == nullptr ? nullptr : optimizer->find("state");
  if (state != nullptr && state->scalar == "sharded")
    return yaml::error_at(
        *state,
        "train.optimizer.state is sharded, and 'elastic' is set: a lost rank would take its part of "
        "the state with it",
        "remove elastic, or set state to replicated");
  if (spec.train.find("shards") == nullptr) spec.train.set("shards", yaml::scalar("auto", node.source));
  return {};
}

// What the framework's choice demands of the other keys.
Result<void> check_framework(Fields& root, JobSpec& spec) {
  const Node* command = root.find("command");
  const Node* train = root.find("train");
  if (spec.framework.empty() && train != nullptr)
    return yaml::error_at(*train, "'framework' is missing", "'train' belongs to framework: builtin");
  if (spec.framework.empty() && command == nullptr)
    return yaml::error_at(root.node(), "'framework' is missing, and there is no 'command' to run",
                          "framework: builtin trains with dlrun's own runtime; or give a command");
  if (spec.framework.empty()) spec.framework = "plain";
  const bool builtin = spec.framework == "builtin";
  if (train != nullptr && !builtin)
    return yaml::error_at(*train, fmt::format("'train' needs framework: builtin, not {}", spec.framework),
                          "framework: builtin runs the training of 'train'; other frameworks run a command");
  if (train == nullptr && builtin)
    return yaml::error_at(*root.find("framework"), "'train' is missing: it describes the training",
                          "see man 5 dlrun-job");
  if (command != nullptr && builtin)
    return yaml::error_at(*command, "framework: builtin takes no command",
                          "describe the training in 'train', or set the framework of the command");
  if (command == nullptr && !builtin)
    return yaml::error_at(*root.find("framework"),
                          fmt::format("'command' is missing: framework {} runs one", spec.framework));
  return {};
}

Result<std::string> read_name(Fields& root, const JobSpec& spec) {
  const Node* node = root.find("name");
  if (node == nullptr) {
    const std::string from = spec.command.empty()
                                 ? spec.framework
                                 : std::filesystem::path(spec.command.front()).filename().string();
    const std::string name = as_job_name(from);
    return name.empty() ? std::string("job") : name;
  }
  const std::string name = TRY(yaml::as_text(*node, "name"));
  if (name.empty() || as_job_name(name) != name)
    return yaml::error_at(*node, fmt::format("name: '{}' is not a valid job name", name),
                          "use up to 64 letters, digits, '-', '_' and '.', a letter or digit first");
  return name;
}

}  // namespace

std::string place_of(const JobSpec& spec, std::string_view path) {
  const Node* node = &spec.tree;
  for (const std::string& key : split(path, '.')) {
    node = node->find(key);
    if (node == nullptr) return {};
  }
  return node->source == kDefaultSource ? std::string() : node->source;
}

Result<JobSpec> read_job_spec(const Node& root, const std::filesystem::path& base) {
  Fields fields = TRY(Fields::of(root, ""));
  fields.hint_at(other_keys());
  JobSpec spec;
  spec.base_directory = base;
  for (const std::string_view key :
       {"name", "framework", "resources", "roles", "command", "stage", "environment", "launch", "checkpoint",
        "chain", "parallel", "elastic", "bench", "train"})
    fields.known(key);
  TRY(fields.finish());
  spec.framework = TRY(fields.text_or("framework", ""));
  spec.resources = TRY(read_resources(TRY(section(fields, "resources"))));
  spec.roles = TRY(read_roles(TRY(section(fields, "roles"))));
  spec.command = TRY(read_command(fields.find("command")));
  spec.stage = TRY(read_stage(fields, base));
  spec.environment = TRY(read_environment(TRY(section(fields, "environment")), base));
  spec.launch = TRY(read_launch(TRY(section(fields, "launch"))));
  spec.checkpoint = TRY(read_checkpoint(TRY(section(fields, "checkpoint")), base));
  spec.chain = TRY(read_chain(TRY(section(fields, "chain"))));
  spec.parallel = TRY(read_parallel(fields));
  spec.elastic = TRY(read_elastic(fields));
  spec.bench = TRY(read_bench(fields));
  TRY(check_framework(fields, spec));
  spec.name = TRY(read_name(fields, spec));
  if (const Node* train = fields.find("train")) spec.train = *train;
  TRY(check_elastic(fields, spec));
  if (const Node* nodes = TRY(section(fields, "resources")).find("nodes"))
    TRY(check_node_range(*nodes, spec));
  spec.tree = root;
  // What was left to us shows up where the merged job is explained.
  for (const auto& [key, value] : {std::pair{"name", spec.name}, std::pair{"framework", spec.framework}})
    if (!fields.has(key)) spec.tree.set(key, yaml::scalar(value, kDefaultSource));
  return spec;
}

}  // namespace dlrun::plan
