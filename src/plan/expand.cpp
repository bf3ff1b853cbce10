#include "src/plan/expand.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "schedulers/scheduler.hpp"
#include "src/base/fields.hpp"
#include "src/base/strings.hpp"
#include "src/plan/config_layers.hpp"
#include "src/plan/script_word.hpp"
#include "src/plan/secrets.hpp"
#include "src/plan/stage_in.hpp"
#include "src/plan/valid_names.hpp"
#include "src/plan/variables_in_text.hpp"

namespace dlrun::plan {
namespace {

using yaml::Kind;
using yaml::Node;

// Of a list, each item.
constexpr std::array<std::string_view, 13> kPaths{
    "checkpoint.dir",
    "checkpoint.files",
    "environment.activate",
    "environment.container.image",
    "environment.container.mounts",
    "environment.module-paths",
    "train.data.dir",
    "train.data.file",
    "train.data.list",
    "train.data.test-file",
    "train.data.test-list",
    "train.init-from",
    "train.init-from.file",
};

// What an MPI or the node sets for one node or rank alone. dlrun's own are reserved (valid_names.hpp), those
// of schedulers are in their rows.
constexpr std::array<std::string_view, 12> kPerNode{"CUDA_VISIBLE_DEVICES",
                                                    "HIP_VISIBLE_DEVICES",
                                                    "HOSTNAME",
                                                    "LOCAL_RANK",
                                                    "MPI_LOCALRANKID",
                                                    "NODE_RANK",
                                                    "PMIX_RANK",
                                                    "PMI_RANK",
                                                    "RANK",
                                                    "ROCR_VISIBLE_DEVICES",
                                                    "TMPDIR",
                                                    "ZE_AFFINITY_MASK"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool differs_per_node(const std::string& name) {
  return is_reserved_variable(name) || name.starts_with("OMPI_COMM_WORLD_") || contains(kPerNode, name) ||
         std::any_of(all_schedulers().begin(), all_schedulers().end(), [&](const Scheduler& scheduler) {
           return contains(scheduler.variables.per_node, name);
         });
}

bool is_of_scheduler(const std::string& name) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::any_of(all_schedulers().begin(), all_schedulers().end(), [&](const Scheduler& scheduler) {
    const VariableRules& rules = scheduler.variables;
    return contains(rules.names, name) || std::any_of(rules.prefixes.begin(), rules.prefixes.end(), begins);
  });
}

Node* child_of(Node* node, std::string_view path) {
  for (const std::string& key : split(path, '.')) {
    Node* next = nullptr;
    for (auto& [name, value] : node->entries)
      if (name == key) next = &value;
    if (next == nullptr) return nullptr;
    node = next;
  }
  return node;
}

constexpr const char* kInShell =
    "let a shell on the node expand it: command: [sh, -c, '...']; or write $$ for a "
    "dollar sign";

class Expander {
 public:
  Expander(Node& tree, const Environment& environment, SchedulerVariables scheduler)
      : environment_(environment), scheduler_(scheduler) {
    if (const Node* set = child_of(&tree, "environment.set"))
      for (const auto& [name, value] : set->entries)
        if (value.kind == Kind::scalar) set_[name] = value.scalar;
    if (const Node* secrets = child_of(&tree, "environment.secrets"))
      patterns_ = yaml::as_text_list(*secrets, "").value_or(std::vector<std::string>{});
    const Node* stage = child_of(&tree, "stage");
    stages_ = stage != nullptr && !stage->items.empty();
  }

  /// The items of the section `stage`, whose own paths are expanded.
  void set_staged(const std::vector<StageIn>& items) {
    for (const StageIn& item : items)
      staged_[stage_variable(item.name)] = fmt::format("{}/{}", kStagePlaceholder, item.name);
  }

  Result<void> expand(Node& node, const std::string& path) {
    if (node.kind != Kind::scalar) return {};
    // "venv:~/env"
    const std::size_t prefix = path == "environment.activate" && node.scalar.starts_with("venv:") ? 5 : 0;
    // An empty word is an argument; a path with an empty part is another path.
    const bool may_be_empty = path.starts_with("command[");
    const auto lookup = [&](const std::string& name) -> Result<std::string> {
      std::string found = TRY(value_of(name));
      if (found.empty() && !may_be_empty)
        return refuse(fmt::format("${} is empty", name), "set it to a folder in the environment of dlrun");
      return found;
    };
    const auto value = expand_text(std::string_view(node.scalar).substr(prefix), lookup);
    if (!value)
      return yaml::error_at(node, fmt::format("{}: {}", path, value.error().what), value.error().hint);
    std::string whole = node.scalar.substr(0, prefix) + *value;
    if (whole == node.scalar) return {};
    changes_.push_back({path, whole});
    node.scalar = std::move(whole);
    node.style = yaml::Style::quoted;  // "$N" is a text, also where its value looks like a number
    return {};
  }

  std::vector<Expansion> changes() { return std::move(changes_); }

 private:
  Result<std::string> value_of(const std::string& name) const {
    if (const auto set = set_.find(name); set != set_.end() && !is_secret(name, patterns_))
      return set->second;
    if (is_secret(name, patterns_))
      return refuse(fmt::format("${} is a secret, which the plan and ps would show", name));
    if (name == kStageVariable && stages_) return std::string(kStagePlaceholder);
    if (name == kStageVariable)
      return refuse("$DLRUN_STAGE is set only in jobs that have a section 'stage'",
                    "stage: [{from: /project/flowers.tar, to: node-local}]");
    if (const auto item = staged_.find(name); item != staged_.end()) return item->second;
    if (!staged_.empty() && name.starts_with(fmt::format("{}_", kStageVariable)))
      return refuse(fmt::format("${} names no item of the section 'stage'", name),
                    did_you_mean(name, names_of_staged()));
    if (differs_per_node(name)) return refuse(fmt::format("${} differs between nodes or ranks", name));
    if (const auto value = environment_.find(name)) return *value;
    if (scheduler_ == SchedulerVariables::may_come && is_of_scheduler(name)) return "$" + name;
    return refuse(fmt::format("${} is unset", name),
                  "set it in the environment of dlrun, or in environment.set; $$ is a dollar sign");
  }

  std::vector<std::string> names_of_staged() const {
    std::vector<std::string> out;
    for (const auto& [name, path] : staged_) out.push_back(name);
    return out;
  }

  static tl::unexpected<Error> refuse(std::string what, std::string hint = kInShell) {
    return fail(Error{
        .kind = ErrorKind::input, .what = std::move(what), .where = {}, .hint = std::move(hint), .also = {}});
  }

  const Environment& environment_;
  SchedulerVariables scheduler_;
  std::map<std::string, std::string> set_;
  std::vector<std::string> patterns_;
  std::vector<Expansion> changes_;
  bool stages_ = false;                        // the job does
  std::map<std::string, std::string> staged_;  // by variable
};

// Refuses ~name: nobody wants a folder of that name.
Result<void> check_tilde(const Node& node, std::string_view path) {
  if (!node.scalar.starts_with('~') || node.scalar == "~" || node.scalar.starts_with("~/")) return {};
  return yaml::error_at(
      node, fmt::format("{}: '{}' names another user's home, which is not expanded", path, node.scalar),
      "write the full path");
}

Result<void> expand_path(Expander& expander, Node& node, const std::string& path) {
  for (std::size_t i = 0; i < node.items.size(); ++i)
    TRY(expand_path(expander, node.items[i], fmt::format("{}[{}]", path, i)));
  if (node.kind != Kind::scalar) return {};
  TRY(check_tilde(node, path));
  return expander.expand(node, path);
}

Result<void> expand_command(Expander& expander, Node& command) {
  std::vector<std::string> words;
  for (const Node& word : command.items) words.push_back(word.scalar);
  const auto script = script_word(words);
  for (std::size_t i = 0; i < command.items.size(); ++i)
    if (i != script && command.items[i].source != kCommandLine)
      TRY(expander.expand(command.items[i], fmt::format("command[{}]", i)));
  return {};
}

}  // namespace

Result<ExpandedTree> expand_variables(Node tree, const Environment& environment,
                                      SchedulerVariables scheduler) {
  Expander expander(tree, environment, scheduler);
  if (Node* stage = child_of(&tree, "stage"))
    for (std::size_t i = 0; i < stage->items.size(); ++i)
      for (const std::string_view key : {"from", "to"})
        if (Node* path = child_of(&stage->items[i], key))
          TRY(expand_path(expander, *path, fmt::format("stage[{}].{}", i, key)));
  // Items that cannot be read are refused where the job is.
  if (auto job = yaml::Fields::of(tree, ""))
    if (const auto items = read_stage(*job, "/")) expander.set_staged(*items);
  for (const std::string_view path : kPaths)
    if (Node* node = child_of(&tree, path)) TRY(expand_path(expander, *node, std::string(path)));
  if (Node* command = child_of(&tree, "command")) TRY(expand_command(expander, *command));
  return ExpandedTree{std::move(tree), expander.changes()};
}

}  // namespace dlrun::plan
