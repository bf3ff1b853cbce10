// Torque: PBS_NODEFILE as PBS has it, and what tells Torque from PBS: PBS_NUM_PPN, PBS_NUM_NODES, PBS_NP,
// PBS_GPUFILE (lines host-gpuN). Without the GPU file, GPUs are unknown; Torque tells a job no end.
#include "schedulers/torque/torque.hpp"

#include <map>

#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/node_identity.hpp"
#include "schedulers/pbs/launch.hpp"
#include "schedulers/pbs/pbs.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

// "node1-gpu0" in the file; every host must be one of ours.
Result<void> add_gpus(const NamedFile& file, Allocation& out) {
  std::vector<HostName> names;
  for (const AllocatedNode& node : out.nodes) names.push_back(node.host);
  const NodeFinder finder(names);
  for (AllocatedNode& node : out.nodes) node.gpus.emplace();
  for (const WordLine& line : word_lines(file.text)) {
    const std::string place = fmt::format("{}:{}", file.path, line.number);
    const std::string& word = line.words[0];
    const std::size_t at = word.rfind("-gpu");
    const auto index = at == word.npos ? fail(ErrorKind::allocation, "no index")
                                       : parse_integer(word.substr(at + 4), 0, kMaxSlots);
    if (!index || line.words.size() > 1)
      return fail(unreadable(fmt::format("'{}' is not of the form HOST-gpuN", word), place));
    const auto node = TRY(finder.find(word.substr(0, at)));
    if (!node)
      return fail(conflict("PBS_GPUFILE and PBS_NODEFILE", fmt::format("{}: {}", place, word),
                           "nodes: " + describe(out.nodes)));
    out.nodes[*node].gpus->push_back(std::to_string(*index));
  }
  return {};
}

Result<void> check_processors(const Environment& environment, const NamedFile& file, const Allocation& out) {
  const auto told = environment.find("PBS_NP");
  std::int64_t sum = 0;
  for (const AllocatedNode& node : out.nodes) sum += node.slots;
  if (!told || *told == std::to_string(sum)) return {};
  return fail(conflict("PBS_NP and PBS_NODEFILE", "PBS_NP=" + *told,
                       fmt::format("{}: {} slots: {}", file.path, sum, describe(out.nodes))));
}

std::string detect_torque(const DiscoveryContext& context) {
  if (!context.environment.find("PBS_NODEFILE")) return {};
  for (const std::string_view mark : {"PBS_NUM_PPN", "PBS_NUM_NODES", "PBS_NP", "PBS_GPUFILE"})
    if (const auto value = context.environment.find(mark)) return fmt::format("{}={}", mark, *value);
  return {};
}

Result<Allocation> torque_allocation(const DiscoveryContext& context) {
  const Environment& environment = context.environment;
  const NamedFile file = TRY(file_of_variable(environment, "PBS_NODEFILE"));
  Allocation out;
  out.scheduler = "torque";
  out.job_id = environment.find("PBS_JOBID");
  if (const auto index = parse_integer(environment.get("PBS_ARRAYID"), 0, INT32_MAX))
    out.array_index = static_cast<int>(*index);
  out.nodes = TRY(nodes_of_lines(file.text, file.path));
  TRY(check_processors(environment, file, out));
  out.evidence.push_back(fmt::format("PBS_NODEFILE={}: {} nodes", file.path, out.nodes.size()));
  if (!environment.get("PBS_GPUFILE").empty()) {
    const NamedFile gpus = TRY(file_of_variable(environment, "PBS_GPUFILE"));
    TRY(add_gpus(gpus, out));
    out.evidence.push_back("PBS_GPUFILE=" + gpus.path);
  } else {
    out.evidence.emplace_back("no PBS_GPUFILE: GPUs unknown");
  }
  out.evidence.emplace_back("Torque does not report the end of a job: unknown");
  return out;
}

bool owns_qsub(const ProgramText& qsub) {
  const std::string& version = qsub.of("--version");
  return !is_openpbs(qsub) && (version.find("commit:") != version.npos || version.starts_with("version:"));
}

}  // namespace

Scheduler torque_scheduler() {
  const VariableRules pbs = pbs_scheduler().variables;  // the same names
  return {.name = "torque",
          .title = "Torque",
          .detect = detect_torque,
          .allocation = torque_allocation,
          .slot_unit = SlotUnit::cores,
          .submission = make_torque_submission,
          .submit_program = "qsub",
          .owns_submit_program = owns_qsub,
          .submit_host = {.variable = "PBS_DEFAULT", .files = {"/var/spool/torque/server_name"}},
          .launcher = begin_pbs_launcher,
          .variables = {.drop_for_submit = pbs.drop_for_submit,
                        .keep_for_submit = pbs.keep_for_submit,
                        .is_batch_job = pbs.is_batch_job}};
}

}  // namespace dlrun
