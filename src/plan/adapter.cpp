// Reads one adapter file. See adapter.hpp for what an adapter can say and man/dlrun-framework.5 for people.
#include "src/plan/adapter.hpp"

#include <algorithm>
#include <array>

#include "src/base/fields.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

// "TEXT", or {value: TEXT, if: FACT}, or {json: FACT, if: FACT}.
Result<AdapterVariable> read_variable(const std::string& key, const Node& node, const std::string& path) {
  AdapterVariable out;
  out.name = key;
  if (!is_shell_identifier(key)) return yaml::error_at(node, fmt::format("'{}' cannot name a variable", key));
  if (is_reserved_variable(key))
    return yaml::error_at(node, fmt::format("dlrun itself sets {} for every rank", key));
  if (node.kind != yaml::Kind::map) {
    out.text = TRY(FactText::parse(node, path, Scope::rank));
    out.uses_rank = out.text->uses_rank();
    return out;
  }
  Fields fields = TRY(Fields::of(node, path));
  const Node* value = fields.find("value");
  const Node* json = fields.find("json");
  const Node* condition = fields.find("if");
  TRY(fields.finish());
  if ((value == nullptr) == (json == nullptr))
    return yaml::error_at(node, fmt::format("{} needs either 'value' or 'json'", path));
  if (value != nullptr) out.text = TRY(FactText::parse(*value, path + ".value", Scope::rank));
  if (json != nullptr) out.json_fact = TRY(parse_fact_name(*json, path + ".json", Scope::rank));
  if (condition != nullptr) out.condition = TRY(parse_fact_name(*condition, path + ".if", Scope::rank));
  const auto of_rank = [](const std::string& fact) {
    return !fact.empty() && find_fact(fact)->scope == Scope::rank;
  };
  out.uses_rank = (out.text && out.text->uses_rank()) || of_rank(out.json_fact) || of_rank(out.condition);
  return out;
}

Result<std::vector<FactText>> read_words(const Node* node, const std::string& path, Scope allowed) {
  std::vector<FactText> out;
  if (node == nullptr) return out;
  if (node->kind != yaml::Kind::list) return yaml::error_at(*node, path + " must be a list of words");
  for (const Node& word : node->items) out.push_back(TRY(FactText::parse(word, path, allowed)));
  return out;
}

Result<void> check_file_name(const Node& node, const std::string& name) {
  const std::filesystem::path path(name);
  const bool inside = !name.empty() && path.is_relative() && path.lexically_normal().string() == name &&
                      name != "." && path.begin()->string() != ".." && !path.filename().empty();
  if (inside && name.find('\n') == std::string::npos) return {};
  return yaml::error_at(node, fmt::format("files: '{}' is no name below the run directory", name));
}

Result<void> read_files(const Node* node, Adapter& out) {
  if (node == nullptr) return {};
  Fields fields = TRY(Fields::of(*node, "files"));
  for (const auto& [name, content] : node->entries) {
    TRY(check_file_name(content, name));
    out.files.emplace_back(name, TRY(FactText::parse(content, fields.path(name), Scope::job)));
  }
  return {};
}

Result<void> read_checks(const Node* node, std::string_view key, std::vector<std::vector<FactText>>& out) {
  if (node == nullptr) return {};
  if (node->kind != yaml::Kind::list)
    return yaml::error_at(*node, fmt::format("{} must be a list of commands", key));
  for (const Node& command : node->items) {
    out.push_back(TRY(read_words(&command, std::string(key), Scope::job)));
    if (out.back().empty()) return yaml::error_at(command, fmt::format("{}: an empty command", key));
  }
  return {};
}

// What must be there becomes checks, so that it is looked for where the ranks run and after the prelude.
Result<void> read_needs(const Node* node, Adapter& out) {
  if (node == nullptr) return {};
  Fields fields = TRY(Fields::of(*node, "needs"));
  for (const auto& [key, test, text] :
       {std::array<const char*, 3>{"programs", "command -v \"$0\" >/dev/null", "the program $0 is not found"},
        std::array<const char*, 3>{"variables", "eval \"[ -n \\\"\\${$0+set}\\\" ]\"",
                                   "the variable $0 is not set"}}) {
    const Node* names = fields.find(key);
    if (names == nullptr) continue;
    for (const std::string& name : TRY(fields.text_list(key))) {
      if (name.empty() || (key == std::string_view("variables") && !is_shell_identifier(name)))
        return yaml::error_at(*names, fmt::format("needs.{}: '{}' is no name", key, name));
      const std::string line = fmt::format("{} || {{ echo \"{}, and framework {} needs it\" >&2; exit 1; }}",
                                           test, text, out.name);
      std::vector<FactText> check;
      for (const std::string& word : {std::string("sh"), std::string("-c"), line, name})
        check.push_back(FactText::literal(word, names->source));
      out.checks.push_back(std::move(check));
    }
  }
  return fields.finish();
}

// A fact of a role that this adapter does not have would be empty in every job.
Result<void> check_role_names(const Adapter& adapter) {
  std::vector<std::string> known;
  for (const RoleKind& kind : adapter.roles) known.push_back(kind.name);
  const auto check = [&](const std::string& fact, const std::string& where) -> Result<void> {
    const std::string role = role_of_fact(fact);
    if (role.empty() || std::find(known.begin(), known.end(), role) != known.end()) return {};
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("fact '{}': this framework has no role '{}'", fact, role),
                      .where = where,
                      .hint = known.empty() ? "name its roles under 'roles'" : did_you_mean(role, known)});
  };
  std::vector<const FactText*> texts;
  for (const auto* variables : {&adapter.variables, &adapter.defaults})
    for (const AdapterVariable& variable : *variables) {
      if (variable.text) texts.push_back(&*variable.text);
      TRY(check(variable.json_fact, adapter.source));
      TRY(check(variable.condition, adapter.source));
    }
  for (const auto* list : {&adapter.prefix, &adapter.suffix, &adapter.command})
    for (const FactText& text : *list) texts.push_back(&text);
  for (const auto& [name, text] : adapter.files) texts.push_back(&text);
  for (const auto* lists : {&adapter.checks, &adapter.plan_checks})
    for (const auto& list : *lists)
      for (const FactText& text : list) texts.push_back(&text);
  for (const FactText* text : texts)
    for (const std::string& fact : text->facts()) TRY(check(fact, text->source()));
  return {};
}

}  // namespace

Result<Adapter> parse_adapter(std::string_view text, const std::string& file) {
  return parse_adapter(TRY(yaml::parse(text, file)), file);
}

yaml::Node extend_adapter(const yaml::Node& parent, const yaml::Node& child) {
  yaml::Node out = parent;
  out.source = child.source;
  for (const auto& [key, value] : child.entries) {
    const Node* base = parent.find(key);
    const bool both_maps = base != nullptr && base->kind == yaml::Kind::map && value.kind == yaml::Kind::map;
    Node merged = both_maps ? *base : value;
    if (both_maps)
      for (const auto& [name, inner] : value.entries) merged.set(name, inner);
    out.set(key, std::move(merged));
  }
  return out;
}

Result<Adapter> parse_adapter(const yaml::Node& root, const std::string& file) {
  static const std::array<std::string, 3> models{"per-rank", "per-node", "per-job"};
  static const std::array<std::string, 5> protocols{"none", "auto", "pmix", "pmi1", "engine"};
  Fields fields = TRY(Fields::of(root, ""));
  for (const std::string_view key :
       {"name", "summary", "process", "mpi", "env", "prefix", "suffix", "command", "files", "checks",
        "plan-checks", "roles", "extends", "defaults", "needs"})
    fields.known(key);
  TRY(fields.finish());
  Adapter out;
  out.source = file;
  out.name = TRY(fields.text("name"));
  out.summary = TRY(fields.text("summary"));
  if (out.name.empty() || as_job_name(out.name) != out.name)
    return yaml::error_at(*fields.find("name"), fmt::format("'{}' cannot name a framework", out.name));
  out.process = static_cast<ProcessModel>(TRY(fields.choice_or("process", 0, models)));
  out.mpi = protocols[TRY(fields.choice_or("mpi", 0, protocols))];
  if (const Node* env = fields.find("env")) {
    const Fields variables = TRY(Fields::of(*env, "env"));
    for (const auto& [key, value] : env->entries)
      out.variables.push_back(TRY(read_variable(key, value, variables.path(key))));
  }
  out.prefix = TRY(read_words(fields.find("prefix"), "prefix", Scope::rank));
  out.suffix = TRY(read_words(fields.find("suffix"), "suffix", Scope::rank));
  out.command = TRY(read_words(fields.find("command"), "command", Scope::rank));
  if (const Node* defaults = fields.find("defaults")) {
    const Fields variables = TRY(Fields::of(*defaults, "defaults"));
    for (const auto& [key, value] : defaults->entries)
      out.defaults.push_back(TRY(read_variable(key, value, variables.path(key))));
  }
  TRY(read_needs(fields.find("needs"), out));
  if (const Node* roles = fields.find("roles")) out.roles = TRY(read_role_kinds(*roles, "roles"));
  if (!out.roles.empty() && out.process != ProcessModel::per_rank)
    return yaml::error_at(*fields.find("roles"), "roles go with process: per-rank");
  TRY(read_files(fields.find("files"), out));
  TRY(read_checks(fields.find("checks"), "checks", out.checks));
  TRY(read_checks(fields.find("plan-checks"), "plan-checks", out.plan_checks));
  TRY(check_role_names(out));
  return out;
}

}  // namespace dlrun::plan
