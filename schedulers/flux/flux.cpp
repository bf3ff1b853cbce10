// Flux: the resource set R, version 1, as `flux job info ID R` or (inside a batch instance, which is the
// whole of its own resources) `flux resource R` prints it. Rank i of R_lite is the i-th name of all nodelist
// entries.
#include "schedulers/flux/flux.hpp"

#include "schedulers/flux/launch.hpp"
#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/query.hpp"
#include "schedulers/slurm/gres.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

// "0-1", "[0-3,7]"
Result<std::vector<int>> read_idset(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  if (text.empty()) return std::vector<int>{};
  return parse_index_list(text);
}

Result<std::vector<int>> child(const Json& children, const char* name, std::string_view where) {
  if (!children.is_object() || !children.contains(name)) return std::vector<int>{};
  return read_idset(TRY(field<std::string>(children, name, where)));
}

Result<std::vector<HostName>> read_names(const Json& execution, std::string_view where) {
  std::vector<HostName> out;
  for (const std::string& list : TRY(field<std::vector<std::string>>(execution, "nodelist", where))) {
    const auto names = TRY(expand_hostlist(list));
    out.insert(out.end(), names.begin(), names.end());
  }
  return out;
}

Result<void> read_lite_entry(const Json& entry, std::vector<std::optional<AllocatedNode>>& nodes,
                             const std::vector<HostName>& names, std::string_view where) {
  const Json children = TRY(field<Json>(entry, "children", where));
  const auto cores = TRY(child(children, "core", where));
  std::vector<std::string> gpus;
  for (const int gpu : TRY(child(children, "gpu", where))) gpus.push_back(std::to_string(gpu));
  for (const int rank : TRY(read_idset(TRY(field<std::string>(entry, "rank", where))))) {
    const auto at = static_cast<std::size_t>(rank);
    if (at >= names.size())
      return fail(unreadable(fmt::format("rank {} has no name: nodelist has {}", rank, names.size()), where));
    if (nodes[at]) return fail(unreadable(fmt::format("rank {} is listed twice in R_lite", rank), where));
    const int count = static_cast<int>(cores.size());
    if (count == 0) return fail(unreadable(fmt::format("rank {} ({}) has no core", rank, names[at]), where));
    nodes[at] = AllocatedNode{.host = names[at], .slots = count, .cpus = count, .gpus = gpus};
  }
  return {};
}

Result<Allocation> read_r(const Json& r, std::string_view where) {
  const Json execution = TRY(field<Json>(r, "execution", where));
  const auto names = TRY(read_names(execution, where));
  std::vector<std::optional<AllocatedNode>> nodes(names.size());
  const Json entries = TRY(field<Json>(execution, "R_lite", where));
  if (!entries.is_array()) return fail(unreadable("R_lite is not a list", where));
  for (const Json& entry : entries) TRY(read_lite_entry(entry, nodes, names, where));
  Allocation out;
  out.scheduler = "flux";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) return fail(unreadable(fmt::format("node {} has no entry in R_lite", names[i]), where));
    out.nodes.push_back(std::move(*nodes[i]));
  }
  if (out.nodes.empty()) return fail(unreadable("R names no node", where));
  constexpr double last = 1e11;  // seconds since 1970: far beyond any job, and safe to convert
  if (execution.contains("expiration"))
    if (const double end = TRY(field<double>(execution, "expiration", where)); end > 0 && end < last)
      out.end_time = Instant(std::chrono::milliseconds(static_cast<std::int64_t>(end * 1000)));
  out.evidence.push_back(fmt::format("{}: R of {} nodes", where, out.nodes.size()));
  return out;
}

std::string detect_flux(const DiscoveryContext& context) {
  for (const std::string_view variable : {"FLUX_JOB_ID", "FLUX_URI"})
    if (const auto value = context.environment.find(variable)) return fmt::format("{}={}", variable, *value);
  return {};
}

Result<Allocation> find_flux_allocation(const DiscoveryContext& context) {
  const auto id = context.environment.find("FLUX_JOB_ID");
  const Argv argv = id ? Argv{"flux", "job", "info", *id, "R"} : Argv{"flux", "resource", "R"};
  const std::string where = join(argv, " ");
  const auto text = ask_scheduler(context, argv);
  if (!text) return fail(about_allocation(text.error(), where));
  Allocation out = TRY(flux_allocation(TRY(parse_json(*text, where)), where));
  out.job_id = id;
  return out;
}

std::vector<EndQuestion> flux_end_questions(const std::string& job_id) {
  const auto read = [](const std::string& answer) -> Result<std::optional<Instant>> {
    return TRY(flux_allocation(TRY(parse_json(answer, "flux job info")), "flux job info")).end_time;
  };
  return {{{"flux", "job", "info", job_id, "R"}, read}};
}

}  // namespace

bool is_flux_r(const Json& json) {
  return json.is_object() && json.contains("execution") && json.at("execution").is_object() &&
         json.at("execution").contains("R_lite");
}

Result<Allocation> flux_allocation(const Json& r, std::string_view where) {
  auto out = read_r(r, where);
  if (!out && out.error().kind != ErrorKind::allocation) return fail(about_allocation(out.error(), where));
  return out;
}

Scheduler flux_scheduler() {
  return {.name = "flux",
          .title = "Flux",
          .detect = detect_flux,
          .allocation = find_flux_allocation,
          .submission = make_flux_submission,
          .submit_program = "flux",
          .end_questions = flux_end_questions,
          .launcher = begin_flux_launcher,
          .variables = {.prefixes = {"FLUX_"}, .drop_for_submit = {"FLUX_"}, .node_local = {"FLUX_URI"}}};
}

}  // namespace dlrun
