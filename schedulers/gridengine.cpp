// Grid Engine (SGE, Son of Grid Engine, Univa): PE_HOSTFILE, a line a node: name, slots, queue, processor
// range. Only the first two columns say anything about us; a node that stands in several queues has several
// lines. A line without a slot count is skipped with a warning that names it: Grid Engine granted it nothing.
#include "schedulers/hostlist.hpp"
#include "schedulers/scheduler.hpp"
#include "schedulers/sources.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

Result<std::vector<AllocatedNode>> read_lines(const NamedFile& file, Allocation& out) {
  std::vector<AllocatedNode> entries;
  for (const WordLine& line : word_lines(file.text)) {
    const std::string place = fmt::format("{}:{}", file.path, line.number);
    if (auto good = check_host_name(line.words[0]); !good) return fail(about_allocation(good.error(), place));
    if (line.words.size() == 1) {
      out.warnings.push_back(
          fmt::format("{}: node {} has no slot count and is left out", place, line.words[0]));
      continue;
    }
    const auto slots = parse_integer(line.words[1], 0, kMostSlots);
    if (!slots) return fail(unreadable(fmt::format("'{}' is not a count of slots", line.words[1]), place));
    if (*slots == 0) {
      out.warnings.push_back(fmt::format("{}: node {} has 0 slots and is left out", place, line.words[0]));
      continue;
    }
    entries.push_back(
        {.host = HostName(line.words[0]), .slots = static_cast<int>(*slots), .cpus = {}, .gpus = {}});
  }
  if (entries.empty()) return fail(unreadable("the file names no node", file.path));
  return group_nodes(entries, file.path);
}

// NSLOTS is the sum that Grid Engine tells beside the file.
Result<void> check_total(const Environment& environment, const NamedFile& file,
                         const std::vector<AllocatedNode>& nodes) {
  const auto told = environment.find("NSLOTS");
  if (!told) return {};
  std::int64_t sum = 0;
  for (const AllocatedNode& node : nodes) sum += node.slots;
  if (*told == std::to_string(sum)) return {};
  return fail(conflict("NSLOTS and PE_HOSTFILE", "NSLOTS=" + *told,
                       fmt::format("{}: {} slots: {}", file.path, sum, describe(nodes))));
}

class GridEngine final : public Scheduler {
 public:
  std::string_view name() const override { return "gridengine"; }
  std::string inside(const Surroundings& surroundings) const override {
    const auto file = surroundings.environment.find("PE_HOSTFILE");
    return file ? "PE_HOSTFILE=" + *file : std::string();
  }
  Result<Allocation> allocation(const Surroundings& surroundings) const override {
    const Environment& environment = surroundings.environment;
    const NamedFile file = TRY(file_of_variable(environment, "PE_HOSTFILE"));
    Allocation out;
    out.scheduler = "gridengine";
    out.job_id = environment.find("JOB_ID");
    if (const auto task = parse_integer(environment.get("SGE_TASK_ID"), 0, INT32_MAX))
      out.array_index = static_cast<int>(*task);
    out.nodes = TRY(read_lines(file, out));
    TRY(check_total(environment, file, out.nodes));
    out.evidence = {fmt::format("PE_HOSTFILE={}: {} nodes", file.path, out.nodes.size()),
                    "Grid Engine tells a job neither its GPUs nor its end: unknown"};
    return out;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_gridengine_scheduler() {
  return std::make_unique<GridEngine>();
}

}  // namespace dlrun
