#include "src/report/diff/sections.hpp"

#include <algorithm>
#include <set>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/strings.hpp"

namespace dlrun::report {
namespace {

using Values = std::optional<DiffValues>;

Json at(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* here = &json;
  for (const std::string_view name : path) {
    const auto found = here->is_object() ? here->find(name) : here->end();
    if (!here->is_object() || found == here->end()) return nullptr;
    here = &*found;
  }
  return *here;
}

Values told(const Json& value) {
  return value.is_null() ? Values() : Values(flattened(value));
}

Values outcome(const DiffRun& run) {
  if (run.record.is_null()) return std::nullopt;
  DiffValues out{{"exit code", at(run.record, {"exit_code"})},
                 {"attempts", at(run.record, {"attempts"}).size()}};
  if (const Json attempts = at(run.record, {"attempts"}); attempts.is_array() && !attempts.empty())
    for (const Json& loss : at(attempts.back(), {"losses"}))
      out[at(loss, {"on_request"}) == true ? "ranks that left" : "lost ranks"].push_back(
          fmt::format("{} on {}", to_text(at(loss, {"ranks"})),
                      at(loss, {"host"}).is_string() ? loss["host"].get<std::string>() : "?"));
  if (at(run.record, {"exit_code"}) != 0) out["reason"] = at(run.record, {"reason"});
  return out;
}

Values result(const DiffRun& run) {
  if (const Json result = at(run.record, {"result"}); result.is_object()) return flattened(result);
  return told(at(run.record, {"last_progress"}));
}

// Seconds, of the last attempt and of the whole run.
Values times(const DiffRun& run) {
  const Json attempts = at(run.record, {"attempts"});
  if (!attempts.is_array() || attempts.empty()) return std::nullopt;
  DiffValues out;
  const Json timing = at(attempts.back(), {"step_timing"});
  for (const auto& [name, title] :
       {std::pair("seconds_per_step", "seconds per step"), std::pair("start", "seconds to the first step"),
        std::pair("checkpoint", "seconds per checkpoint")})
    if (const Json value = at(timing, {name}); !value.is_null()) out[title] = value;
  for (const char* part : {"useful", "checkpoint", "lost", "idle", "total"})
    out[fmt::format("seconds in all, {}", part)] = at(run.record, {"time", part});
  return out;
}

Values git(const DiffRun& run) {
  if (run.record.is_null()) return std::nullopt;
  return flattened(at(run.provenance, {"git"}));
}

Values job(const DiffRun& run) {
  return told(run.spec);
}

Values data(const DiffRun& run) {
  return told(at(run.provenance, {"data"}));
}

Values dlrun_itself(const DiffRun& run) {
  if (run.record.is_null()) return std::nullopt;
  DiffValues out;
  for (const char* name : {"dlrun", "compiler", "adapter"}) out[name] = at(run.provenance, {name});
  return out;
}

Values versions(const DiffRun& run) {
  return told(at(run.provenance, {"program", "versions"}));
}

Values packages(const DiffRun& run) {
  const Json python = at(run.provenance, {"program", "python"});
  if (python.is_null()) return std::nullopt;
  DiffValues out = flattened(at(python, {"packages"}));
  out["Python"] = at(python, {"version"});
  return out;
}

Values modules(const DiffRun& run) {
  const Json found = at(run.provenance, {"program", "modules"});
  return found.is_null() ? Values() : modules_by_name(found);
}

Values container(const DiffRun& run) {
  if (run.record.is_null()) return std::nullopt;
  return flattened(at(run.provenance, {"container"}));
}

Values environment(const DiffRun& run) {
  return told(at(run.provenance, {"program", "variables"}));
}

Values libraries(const DiffRun& run) {
  const Json found = at(run.provenance, {"program", "libraries"});
  return found.is_null() ? Values() : libraries_by_name(found);
}

std::string ranks_per_node(const Json& ranks, std::size_t nodes) {
  std::vector<std::size_t> counts(nodes);
  for (const Json& rank : ranks)
    if (const auto node = field<std::size_t>(rank, "node", ""); node && *node < nodes) ++counts[*node];
  std::set<std::size_t> different(counts.begin(), counts.end());
  std::vector<std::string> words;
  for (const std::size_t count : different) words.push_back(std::to_string(count));
  return join(words, " or ");
}

// Of all ranks together, and of rank 0 what is another for each.
Values plan(const DiffRun& run) {
  if (run.plan.is_null()) return std::nullopt;
  const Json ranks = at(run.plan, {"ranks"}), nodes = at(run.plan, {"nodes"});
  DiffValues out{{"nodes", nodes.size()}, {"ranks", ranks.size()}};
  out["ranks per node"] = ranks_per_node(ranks, nodes.size());
  for (const char* name : {"framework", "process", "mpi", "working_directory", "limits", "prolog", "files"})
    for (const auto& [path, value] : flattened({{name, at(run.plan, {name})}})) out[path] = value;
  for (const auto& [name, value] : flattened({{"environment", at(run.plan, {"environment"})}}))
    out[name] = value;
  if (!ranks.is_array() || ranks.empty()) return out;
  for (const char* name : {"argv", "gpus", "visible_gpus", "cpus", "environment"})
    for (const auto& [path, value] : flattened({{name, at(ranks.front(), {name})}}))
      out["rank 0 " + path] = value;
  return out;
}

Values hosts(const DiffRun& run) {
  if (run.plan.is_null()) return std::nullopt;
  std::vector<HostName> names;
  for (const Json& node : at(run.plan, {"nodes"}))
    names.emplace_back(field<std::string>(node, "host", "").value_or(""));
  return DiffValues{{"hosts", compress_hostlist(names)}};
}

// Of several kinds of nodes, each value once.
Values machines(const DiffRun& run) {
  const Json nodes = at(run.provenance, {"nodes"});
  if (!nodes.is_array()) return std::nullopt;
  std::map<std::string, std::set<std::string>> texts;
  for (Json node : nodes) {
    if (!node.is_object()) continue;
    node.erase("hosts");
    for (const auto& [name, value] : flattened(node))
      texts[name].insert(value.is_string() ? value.get<std::string>() : to_text(value));
  }
  DiffValues out;
  for (const auto& [name, values] : texts)
    out[name] = join(std::vector<std::string>(values.begin(), values.end()), "; ");
  return out;
}

// What happened, and then what may be the cause: what people change, what a site changes, where it ran.
constexpr DiffSection kSections[] = {{"outcome", outcome},
                                     {"result", result},
                                     {"times", times},
                                     {"git", git},
                                     {"job", job},
                                     {"data", data},
                                     {"packages", packages},
                                     {"modules", modules},
                                     {"versions", versions},
                                     {"container", container},
                                     {"environment", environment},
                                     {"plan", plan},
                                     {"libraries", libraries},
                                     {"machines", machines},
                                     {"dlrun", dlrun_itself},
                                     {"hosts", hosts}};

void flatten(const Json& value, const std::string& path, DiffValues& out) {
  if (!value.is_object()) {
    out[path] = value;
    return;
  }
  for (const auto& [name, inner] : value.items())
    flatten(inner, path.empty() ? name : path + "." + name, out);
}

}  // namespace

std::span<const DiffSection> diff_sections() {
  return kSections;
}

DiffValues flattened(const Json& value) {
  DiffValues out;
  if (value.is_object()) flatten(value, "", out);
  return out;
}

DiffValues modules_by_name(const Json& modules) {
  DiffValues out;
  for (const Json& module : modules) {
    if (!module.is_string()) continue;
    const auto text = module.get<std::string>();
    const std::size_t slash = text.find('/');
    out[text.substr(0, slash)] = slash == std::string::npos ? "loaded" : text.substr(slash + 1);
  }
  return out;
}

DiffValues libraries_by_name(const Json& libraries) {
  DiffValues out;
  if (!libraries.is_object()) return out;
  for (const auto& [file, build] : libraries.items()) {
    std::string name = file.substr(file.rfind('/') + 1);
    if (const std::size_t end = name.find(".so."); end != std::string::npos) name.resize(end + 3);
    const std::string text =
        build.is_string() ? fmt::format("{} ({})", file, build.get<std::string>()) : file;
    Json& value = out[name];
    value = value.is_string() ? Json(value.get<std::string>() + ", " + text) : Json(text);
  }
  return out;
}

}  // namespace dlrun::report
