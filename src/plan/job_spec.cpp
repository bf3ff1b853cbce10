// Reads the merged tree into a JobSpec, section by section. Each function below reads one map and knows all
// its keys; what a key means is decided later, by the planner.
#include "src/plan/job_spec.hpp"

#include <algorithm>
#include <array>

#include "schedulers/scheduler.hpp"
#include "src/base/fields.hpp"
#include "src/base/interval.hpp"
#include "src/base/quote.hpp"
#include "src/base/split_words.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/plan/config_layers.hpp"
#include "src/plan/enum_choice.hpp"
#include "src/plan/node_range.hpp"
#include "src/plan/other_keys.hpp"
#include "src/plan/parallel_spec.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

constexpr int kMaxNodes = 1'000'000;
constexpr std::int64_t kMaxTasks = 100'000;
constexpr std::uint64_t kMinMemory = 1 << 20;

Result<Fields> section(Fields& parent, std::string_view key) {
  static const Node absent;
  const Node* found = parent.find(key);
  Fields out = TRY(Fields::of(found == nullptr ? absent : *found, parent.path(key)));
  out.hint_at(other_keys());
  return out;
}

Result<std::optional<int>> optional_integer(Fields& fields, std::string_view key, std::int64_t low,
                                            std::int64_t high) {
  if (!fields.has(key)) return std::optional<int>{};
  return std::optional<int>(static_cast<int>(TRY(fields.integer_or(key, 0, low, high))));
}

// One of the choices, which keep their order in the error text.
Result<std::string> choice(Fields& fields, std::string_view key, std::string fallback,
                           std::span<const std::string> choices) {
  if (!fields.has(key)) return fallback;
  return choices[TRY(fields.choice_or(key, 0, choices))];
}

// A line that goes into a script or a scheduler's header: one line, or it would become two there.
Result<void> check_single_line(const Node& node, std::string_view name) {
  if (node.scalar.find('\n') == std::string::npos) return {};
  return yaml::error_at(node, fmt::format("{} must be one line", name));
}

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

Result<Resources> read_resources(Fields fields) {
  Resources out;
  TRY(read_nodes(fields, out));
  out.gpus_per_node = TRY(optional_integer(fields, "gpus-per-node", 0, 1024));
  out.tasks_per_node = TRY(optional_integer(fields, "tasks-per-node", 1, kMaxTasks));
  out.cpus_per_task = TRY(optional_integer(fields, "cpus-per-task", 1, 65536));
  if (const Node* walltime = fields.find("walltime")) out.walltime = TRY(read_walltime(*walltime));
  out.queue = TRY(fields.text_or("queue", ""));
  out.account = TRY(fields.text_or("account", ""));
  out.node = TRY(read_node_demand(fields));
  TRY(read_chunks(fields, out));
  out.qos = TRY(fields.text_or("qos", ""));
  out.mail = TRY(fields.text_or("mail", ""));
  if (!out.mail.empty())
    out.mail_events = TRY(read_mail_events(fields));
  else if (const Node* events = fields.find("mail-events"))
    return yaml::error_at(*events, "resources.mail-events needs resources.mail");
  out.extra = TRY(fields.text_list("extra"));
  TRY(fields.finish());
  for (const std::string_view key : {"queue", "account", "gpu-type", "constraint", "qos", "mail"})
    if (const Node* node = fields.find(key)) TRY(check_single_line(*node, fields.path(key)));
  if (out.walltime && out.walltime->count() < 1)
    return yaml::error_at(*fields.find("walltime"), "resources.walltime must be at least one second");
  return out;
}

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

Result<EnvironmentChanges> read_changes(const Fields& fields, std::string_view path) {
  for (const auto& [name, value] : fields.node().entries) {
    if (!is_shell_identifier(name))
      return yaml::error_at(value, fmt::format("'{}' is not a valid variable name", name),
                            "use letters, digits and '_', not starting with a digit");
    if (is_reserved_variable(name))
      return yaml::error_at(value, fmt::format("dlrun itself sets {} for every rank", name));
  }
  return EnvironmentChanges(TRY(yaml::as_text_map(fields.node(), path)));
}

// "conda:NAME" or "venv:PATH", the path made absolute.
Result<std::string> read_activate(Fields& fields, const std::filesystem::path& base) {
  const std::string text = TRY(fields.text_or("activate", ""));
  if (text.empty()) return text;
  const Node& node = *fields.find("activate");
  TRY(check_single_line(node, "environment.activate"));
  if (text.starts_with("conda:") && text.size() > 6) return text;
  if (text.starts_with("venv:") && text.size() > 5)
    return "venv:" + (base / text.substr(5)).lexically_normal().string();
  return yaml::error_at(node, fmt::format("environment.activate: '{}' is not known", text),
                        "write conda:NAME or venv:PATH");
}

Result<std::optional<Container>> read_container(Fields& parent) {
  if (!parent.has("container")) return std::optional<Container>{};
  static const std::array<std::string, 8> engines{"apptainer", "singularity", "podman",  "charliecloud",
                                                  "enroot",    "pyxis",       "shifter", "sarus"};
  Fields fields = TRY(section(parent, "container"));
  Container out;
  out.image = TRY(fields.text_or("image", ""));
  out.engine = TRY(choice(fields, "engine", "apptainer", engines));
  out.mounts = TRY(fields.text_list("mounts"));
  TRY(fields.finish());
  if (out.image.empty()) return yaml::error_at(fields.node(), "'environment.container.image' is missing");
  return std::optional<Container>(std::move(out));
}

// Of variables' names, as in [A-Z]*_TOKEN.
Result<std::vector<std::string>> read_patterns(Fields& fields, std::string_view key) {
  std::vector<std::string> out = TRY(fields.text_list(key));
  for (const std::string& pattern : out)
    if (pattern.empty() || pattern.find_first_of("= \t\n") != std::string::npos)
      return yaml::error_at(
          *fields.find(key),
          fmt::format("{}: '{}' is not a pattern of variable names", fields.path(key), pattern),
          "write names, with * and ? as in a shell");
  return out;
}

// Folders of modulefiles, made absolute: they go onto the command line of `module use`, one line each.
Result<std::vector<std::string>> read_module_paths(Fields& fields, const std::filesystem::path& base) {
  std::vector<std::string> out = TRY(fields.text_list("module-paths"));
  for (std::string& path : out) {
    if (path.empty() || path.find_first_of(":\n") != std::string::npos || path.starts_with('-'))
      return yaml::error_at(*fields.find("module-paths"),
                            fmt::format("environment.module-paths: '{}' is not a folder name", path),
                            "write one folder per item");
    path = (base / path).lexically_normal().string();
  }
  return out;
}

Result<JobEnvironment> read_environment(Fields fields, const std::filesystem::path& base) {
  JobEnvironment out;
  out.module_paths = TRY(read_module_paths(fields, base));
  out.modules = TRY(fields.text_list("modules"));
  out.activate = TRY(read_activate(fields, base));
  out.setup = TRY(fields.text_list("setup"));
  out.set = TRY(read_changes(TRY(section(fields, "set")), "environment.set"));
  out.defaults = TRY(read_changes(TRY(section(fields, "defaults")), "environment.defaults"));
  out.rules.allow = TRY(read_patterns(fields, "allow"));
  out.rules.deny = TRY(read_patterns(fields, "deny"));
  out.rules.secrets = TRY(read_patterns(fields, "secrets"));
  out.container = TRY(read_container(fields));
  TRY(fields.finish());
  for (const std::string& module : out.modules)
    if (module.empty() || module.find_first_of(" \t\n") != std::string::npos || module.starts_with('-'))
      return yaml::error_at(*fields.find("modules"),
                            fmt::format("environment.modules: '{}' is not a valid module name", module));
  return out;
}

// libssh puts it into the words of ssh_config's commands, which are a shell's.
bool is_user_name(std::string_view text) {
  return !text.empty() && text[0] != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+$") ==
             std::string_view::npos;
}

Result<SshSpec> read_ssh(Fields fields) {
  SshSpec out;
  out.host_keys = TRY(enum_or(fields, "host-keys", out.host_keys, kHostKeys));
  out.user = TRY(fields.text_or("user", ""));
  if (const auto port = TRY(optional_integer(fields, "port", 1, 65535)))
    out.port = Port(static_cast<std::uint16_t>(*port));
  out.connect_timeout = TRY(fields.duration_or("connect-timeout", out.connect_timeout));
  TRY(fields.finish());
  if (const Node* user = fields.find("user"); user != nullptr && !is_user_name(out.user))
    return yaml::error_at(*user, fmt::format("launch.ssh.user: '{}' is not a user name", out.user));
  if (out.connect_timeout.count() <= 0)
    return yaml::error_at(*fields.find("connect-timeout"),
                          "launch.ssh.connect-timeout must be longer than 0s");
  return out;
}

Result<std::optional<Wrap>> read_wrap(Fields& launch) {
  const Node* node = launch.find("wrap");
  if (node == nullptr) return std::optional<Wrap>();
  Fields fields = TRY(Fields::of(*node, "launch.wrap"));
  Wrap out;
  const Node& command = *TRY(fields.require("command"));
  out.command = TRY(fields.text_list("command"));
  if (out.command.empty() || out.command.front().empty())
    return yaml::error_at(command, "launch.wrap.command is empty",
                          "for example: [nsys, profile, -o, rank-%q{DLRUN_RANK}]");
  for (const std::string& word : TRY(fields.text_list("ranks"))) {
    const auto rank = parse_integer(word, 0, 1 << 24);
    if (!rank)
      return yaml::error_at(*fields.find("ranks"), fmt::format("launch.wrap.ranks: '{}' is not a rank", word),
                            "ranks are whole numbers from 0; without the key, all ranks are wrapped");
    out.ranks.emplace_back(static_cast<int>(*rank));
  }
  TRY(fields.finish());
  return std::optional(out);
}

Result<MemoryPolicy> read_memory(Fields& fields) {
  MemoryPolicy out;
  out.numa = TRY(fields.text_or("memory", ""));
  if (out.numa == "system") out.numa.clear();
  out.huge_pages = TRY(enum_or(fields, "huge-pages", out.huge_pages, kHugePages));
  const std::string problem = out.numa.empty() ? "" : check_numa(out.numa);
  if (!problem.empty())
    return yaml::error_at(*fields.find("memory"), "launch.memory: " + problem,
                          "write local, interleave, system, or NUMA nodes as 0,2-3");
  return out;
}

Result<LaunchSpec> read_launch(Fields fields) {
  std::vector<std::string> launchers = launcher_names();
  launchers.insert(launchers.begin(), "auto");
  static const std::array<std::string, 5> protocols{"auto", "pmix", "pmi1", "native", "none"};
  LaunchSpec out;
  out.via = TRY(choice(fields, "via", out.via, launchers));
  out.fan_out = static_cast<int>(TRY(fields.integer_or("fan-out", out.fan_out, 1, 10000)));
  out.start_timeout = TRY(fields.duration_or("start-timeout", out.start_timeout));
  out.setup_timeout = TRY(fields.duration_or("setup-timeout", out.setup_timeout));
  out.grace = TRY(fields.duration_or("grace", out.grace));
  out.lost_after = TRY(fields.duration_or("lost-after", out.lost_after));
  out.no_output = TRY(fields.duration_or("no-output-limit", out.no_output));
  out.no_progress = TRY(fields.duration_or("no-progress-limit", out.no_progress));
  out.finalize = TRY(fields.duration_or("finalize-limit", out.finalize));
  out.retries = static_cast<int>(TRY(fields.integer_or("retries", out.retries, 0, 1000)));
  out.mpi = TRY(choice(fields, "mpi", out.mpi, protocols));
  out.bind = TRY(fields.bool_or("bind", out.bind));
  out.memory = TRY(read_memory(fields));
  out.relay = TRY(enum_or(fields, "relay", out.relay, kRelayUses));
  out.check = TRY(enum_or(fields, "check", out.check, kCheckUses));
  out.bad_node_memory = TRY(fields.duration_or("bad-node-memory", out.bad_node_memory));
  out.metrics_file = TRY(fields.text_or("metrics-file", ""));
  out.wrap = TRY(read_wrap(fields));
  out.stage = TRY(fields.bool_or("stage", out.stage));
  out.ssh = TRY(read_ssh(TRY(section(fields, "ssh"))));
  TRY(fields.finish());
  if (out.start_timeout.count() <= 0)
    return yaml::error_at(*fields.find("start-timeout"), "launch.start-timeout must be longer than 0s");
  if (out.lost_after < Seconds(1))
    return yaml::error_at(*fields.find("lost-after"), "launch.lost-after must be 1s or more");
  return out;
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
