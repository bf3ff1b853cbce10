// LSF: LSB_DJOB_HOSTFILE (one line per slot), LSB_DJOB_RANKFILE (the same), LSB_MCPU_HOSTS (name count
// pairs), LSB_HOSTS (names, empty in large jobs). On CORAL machines the first entry is the node that the
// script runs on and no rank may: it is told by its name (batch*, login*) and left out, which the evidence
// says.
#include "schedulers/lsf/lsf.hpp"

#include <algorithm>

#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/lsf/launch.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr std::string_view kPairs = "LSB_MCPU_HOSTS";

struct Source {
  std::string name;
  std::vector<AllocatedNode> nodes;
};

Result<std::vector<AllocatedNode>> read_pairs(std::string_view text) {
  const std::vector<WordLine> lines = word_lines(text);
  if (lines.size() != 1 || lines[0].words.size() % 2 != 0)
    return fail(unreadable(fmt::format("'{}' is not a list of names and counts", text), kPairs));
  const std::vector<std::string>& words = lines[0].words;
  std::vector<AllocatedNode> entries;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (auto good = check_host_name(words[i]); !good) return fail(about_allocation(good.error(), kPairs));
    const auto slots = parse_integer(words[i + 1], 1, kMaxSlots);
    if (!slots)
      return fail(
          unreadable(fmt::format("'{}' after '{}' is not a slot count", words[i + 1], words[i]), kPairs));
    entries.push_back(
        {.host = HostName(words[i]), .slots = static_cast<int>(*slots), .cpus = {}, .gpus = {}});
  }
  return group_nodes(entries, kPairs);
}

// Every source that is there, best first.
Result<std::vector<Source>> all_sources(const Environment& environment) {
  std::vector<Source> out;
  for (const std::string_view variable : {"LSB_DJOB_HOSTFILE", "LSB_DJOB_RANKFILE"}) {
    if (environment.get(variable).empty()) continue;
    const NamedFile file = TRY(file_of_variable(environment, variable));
    out.push_back({fmt::format("{}={}", variable, file.path), TRY(nodes_of_lines(file.text, file.path))});
  }
  if (const std::string pairs = environment.get(kPairs); !trim(pairs).empty())
    out.push_back({fmt::format("{}={}", kPairs, pairs), TRY(read_pairs(pairs))});
  if (std::string hosts = environment.get("LSB_HOSTS"); !trim(hosts).empty()) {
    std::replace(hosts.begin(), hosts.end(), ' ', '\n');
    out.push_back({"LSB_HOSTS", TRY(nodes_of_lines(hosts, "LSB_HOSTS"))});
  }
  return out;
}

bool is_launch_node(const AllocatedNode& node) {
  return node.host.get().starts_with("batch") || node.host.get().starts_with("login");
}

// The launch node may be missing in one source (rank files leave it out), so it goes before they are
// compared.
std::string drop_launch_node(std::vector<AllocatedNode>& nodes) {
  if (nodes.size() < 2 || !is_launch_node(nodes.front())) return {};
  std::string name = nodes.front().host.get();
  nodes.erase(nodes.begin());
  return name;
}

std::string detect_lsf(const DiscoveryContext& context) {
  for (const std::string_view variable : {"LSB_JOBID", "LSB_DJOB_HOSTFILE", "LSB_MCPU_HOSTS"})
    if (const auto value = context.environment.find(variable)) return fmt::format("{}={}", variable, *value);
  return {};
}

Result<Allocation> lsf_allocation(const DiscoveryContext& context) {
  const Environment& environment = context.environment;
  std::vector<Source> sources = TRY(all_sources(environment));
  if (sources.empty())
    return fail(
        unreadable("LSF lists no nodes: LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS and LSB_HOSTS are empty", {}));
  Allocation out;
  out.scheduler = "lsf";
  out.job_id = environment.find("LSB_JOBID");
  if (const auto index = parse_integer(environment.get("LSB_JOBINDEX"), 1, INT32_MAX))
    out.array_index = static_cast<int>(*index);
  std::string launch_node;
  for (Source& source : sources)
    if (const std::string name = drop_launch_node(source.nodes); !name.empty()) launch_node = name;
  for (const Source& other : sources)
    if (!TRY(same_slots(sources.front().nodes, other.nodes)))
      return fail(conflict("two of LSF's lists",
                           fmt::format("{}: {}", sources.front().name, describe(sources.front().nodes)),
                           fmt::format("{}: {}", other.name, describe(other.nodes))));
  out.nodes = sources.front().nodes;
  for (const Source& source : sources) out.evidence.push_back(source.name);
  if (!launch_node.empty())
    out.evidence.push_back(
        fmt::format("launch node {}: left out, by its name (batch*, login*)", launch_node));
  out.evidence.emplace_back("LSF reports neither the GPUs nor the end of a job: unknown");
  return out;
}

}  // namespace

Scheduler lsf_scheduler() {
  return {.name = "lsf",
          .title = "LSF",
          .detect = detect_lsf,
          .allocation = lsf_allocation,
          .slot_unit = SlotUnit::cores,
          .submission = make_lsf_submission,
          .submit_program = "bsub",
          .submit_host = {.variable = "LSF_ENVDIR", .files = {"/etc/lsf.conf"}},
          .launcher = begin_lsf_launcher,
          .variables = {.prefixes = {"LSB_"},
                        .drop_for_submit = {"LSB_", "LS_JOBPID", "LS_SUBCWD"},
                        .node_local = {"LSB_EXEC_HOSTS"},
                        .per_node = {"LSB_JOBRES_PID"},
                        .is_batch_job = [](const Environment& environment) {
                          return environment.get("LSB_INTERACTIVE").empty();
                        }}};
}

}  // namespace dlrun
