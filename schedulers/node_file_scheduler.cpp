// OAR and Cobalt: a variable names a file with one line for each core or rank granted. They tell a job
// neither its GPUs nor its end.
#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/scheduler.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

struct Variables {
  std::string_view name, file, job_id, array_index;
};

class NodeFileScheduler final : public Scheduler {
 public:
  explicit NodeFileScheduler(Variables variables) : variables_(variables) {}
  std::string_view name() const override { return variables_.name; }
  std::string inside(const Surroundings& surroundings) const override {
    for (const std::string_view variable : {variables_.file, variables_.job_id})
      if (const auto value = surroundings.environment.find(variable))
        return fmt::format("{}={}", variable, *value);
    return {};
  }
  Result<Allocation> allocation(const Surroundings& surroundings) const override {
    const NamedFile file = TRY(file_of_variable(surroundings.environment, variables_.file));
    Allocation out;
    out.scheduler = variables_.name;
    out.job_id = surroundings.environment.find(variables_.job_id);
    if (const auto index = parse_integer(surroundings.environment.get(variables_.array_index), 0, INT32_MAX))
      out.array_index = static_cast<int>(*index);
    out.nodes = TRY(nodes_of_lines(file.text, file.path));
    out.evidence = {fmt::format("{}={}: {} nodes", variables_.file, file.path, out.nodes.size()),
                    fmt::format("{} tells a job neither its GPUs nor its end: unknown", variables_.name)};
    return out;
  }

 private:
  Variables variables_;
};

}  // namespace

std::unique_ptr<Scheduler> make_oar_scheduler() {
  return std::make_unique<NodeFileScheduler>(
      Variables{"oar", "OAR_NODEFILE", "OAR_JOB_ID", "OAR_ARRAY_INDEX"});
}

std::unique_ptr<Scheduler> make_cobalt_scheduler() {
  return std::make_unique<NodeFileScheduler>(Variables{"cobalt", "COBALT_NODEFILE", "COBALT_JOBID", ""});
}

}  // namespace dlrun
