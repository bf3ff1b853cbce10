// Reads one adapter file. See adapter.hpp for what an adapter can say and man/dlrun-framework.5 for people.
#include "src/plan/adapter.hpp"

#include <algorithm>
#include <array>

#include "src/base/fields.hpp"
#include "src/base/strings.hpp"
#include "src/plan/enum_choice.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/renamed_keys.hpp"
#include "src/plan/run_directory.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

Result<void> check_file_name(const Node& node, const std::string& name) {
  const std::filesystem::path path(name);
  const bool inside = !name.empty() && path.is_relative() && path.lexically_normal().string() == name &&
                      name != "." && path.begin()->string() != ".." && !path.filename().empty();
  if (!inside || name.find('\n') != std::string::npos)
    return yaml::error_at(node, fmt::format("files: '{}' is not a name below the run directory", name));
  if (is_own_file(path))
    return yaml::error_at(node, fmt::format("files: dlrun itself writes '{}' in the run directory", name),
                          "choose another name");
  return {};
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

Result<void> read_checks(const Node* node, std::string_view key, std::vector<std::vector<AdapterWord>>& out) {
  if (node == nullptr) return {};
  if (node->kind != yaml::Kind::list)
    return yaml::error_at(*node, fmt::format("{} must be a list of commands", key));
  for (const Node& command : node->items) {
    out.push_back(TRY(read_words(&command, std::string(key), Scope::job)));
    if (out.back().empty()) return yaml::error_at(command, fmt::format("{}: an empty command", key));
  }
  return {};
}

// How each library is told the one interface to use, in its own syntax. RCCL has the variable of NCCL.
Result<EnvironmentChanges> read_interfaces(Fields& fields) {
  static const std::array<std::string, 6> libraries{"nccl", "gloo", "horovod", "ucx", "openmpi", "oneccl"};
  static const std::array<std::pair<const char*, const char*>, 6> variables{
      {{"NCCL_SOCKET_IFNAME", "="},
       {"GLOO_SOCKET_IFNAME", ""},
       {"HOROVOD_GLOO_IFACE", ""},
       {"UCX_NET_DEVICES", ""},
       {"OMPI_MCA_btl_tcp_if_include", ""},
       {"CCL_KVS_IFACE", ""}}};
  EnvironmentChanges out;
  if (!fields.has("interfaces")) return out;
  const Node& node = *fields.find("interfaces");
  for (const std::string& name : TRY(fields.text_list("interfaces"))) {
    const auto found = std::find(libraries.begin(), libraries.end(), name);
    if (found == libraries.end())
      return yaml::error_at(node, fmt::format("interfaces: '{}' is not known", name),
                            did_you_mean(name, libraries));
    const auto& [variable, before] = variables[static_cast<std::size_t>(found - libraries.begin())];
    out[variable] = before;
  }
  return out;
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
                      .hint = known.empty() ? "define its roles under 'roles'" : did_you_mean(role, known)});
  };
  std::vector<NamedFact> facts;
  add_facts(facts, adapter.variables, adapter.source);
  add_facts(facts, adapter.defaults, adapter.source);
  for (const auto* words : {&adapter.prefix, &adapter.suffix, &adapter.command}) add_facts(facts, *words);
  for (const auto* checks : {&adapter.checks, &adapter.plan_checks})
    for (const auto& words : *checks) add_facts(facts, words);
  for (const auto& [name, text] : adapter.files)
    for (const std::string& fact : text.facts()) facts.push_back({fact, text.source()});
  for (const RoleKind& kind : adapter.roles) {
    add_facts(facts, kind.command);
    add_facts(facts, kind.variables, adapter.source);
  }
  for (const std::string& fact : adapter.needs.facts) facts.push_back({fact, adapter.needs.where});
  for (const NamedFact& named : facts) TRY(check(named.fact, named.where));
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

Result<Adapter> parse_adapter(const yaml::Node& written, const std::string& file) {
  Adapter out;
  yaml::Node root = written;
  rename_adapter_values(root, out.warnings);
  static const std::array<std::string, 6> protocols{"none", "auto", "detect", "pmix", "pmi1", "native"};
  Fields fields = TRY(Fields::of(root, ""));
  for (const std::string_view key :
       {"name", "summary", "process", "mpi", "env", "prefix", "suffix", "command", "files", "checks",
        "plan-checks", "roles", "extends", "defaults", "needs", "reserve-cpus", "interfaces", "gpu-view",
        "parallel"})
    fields.known(key);
  TRY(fields.finish());
  out.source = file;
  out.name = TRY(fields.text("name"));
  out.summary = TRY(fields.text("summary"));
  if (out.name.empty() || as_job_name(out.name) != out.name)
    return yaml::error_at(*fields.find("name"), fmt::format("'{}' is not a valid framework name", out.name));
  out.process = TRY(enum_or(fields, "process", out.process, kProcessModels));
  out.mpi = protocols[TRY(fields.choice_or("mpi", 0, protocols))];
  out.gpu_view = TRY(enum_or(fields, "gpu-view", out.gpu_view, kGpuViews));
  out.reserve_cpus = static_cast<int>(TRY(fields.integer_or("reserve-cpus", 0, 0, 1024)));
  out.variables = TRY(read_variables(fields.find("env"), "env"));
  out.defaults = TRY(read_variables(fields.find("defaults"), "defaults"));
  out.prefix = TRY(read_words(fields.find("prefix"), "prefix", Scope::rank));
  out.suffix = TRY(read_words(fields.find("suffix"), "suffix", Scope::rank));
  out.command = TRY(read_words(fields.find("command"), "command", Scope::rank));
  out.interfaces = TRY(read_interfaces(fields));
  out.needs = TRY(read_needs(fields.find("needs")));
  out.parallel = TRY(read_adapter_parallel(fields));
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
