// dlrun plan: what would run where. Starts nothing; writes only the scripts that are asked for.
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/cli/commands.hpp"
#include "src/job/run_directory.hpp"

namespace dlrun::cli {
namespace {

std::string gpus_text(const plan::RankPlan& rank) {
  if (!rank.gpus) return "-";
  return rank.gpus->empty() ? "hidden" : join(*rank.gpus, ",");
}

void print_plan(const job::Prepared& job, Console& console) {
  const plan::Plan& plan = job.plan;
  console.out(fmt::format("job        {} ({})", plan.name, plan.framework));
  console.out(fmt::format("allocation {}: {} node{}", job.allocation.scheduler, plan.nodes.size(),
                          plan.nodes.size() == 1 ? "" : "s"));
  console.out(fmt::format("processes  {}, MPI by {}", plan::to_text(plan.process), plan::to_text(plan.mpi)));
  console.out(fmt::format("directory  {}", plan.working_directory));
  std::size_t wide = 4;
  for (const plan::NodePlan& node : plan.nodes) wide = std::max(wide, node.host.get().size());
  console.out("");
  console.out(console.tinted_out(fmt::format("{:>4}  {:<10} {:>4}  {:<{}}  {:>5}  {:<8}  {}", "rank", "role",
                                             "task", "host", wide, "local", "GPUs", "command"),
                                 Tint::bold));
  for (const plan::RankPlan& rank : plan.ranks)
    console.out(fmt::format("{:>4}  {:<10} {:>4}  {:<{}}  {:>5}  {:<8}  {}", rank.rank, rank.role,
                            rank.task_index, plan.nodes.at(static_cast<std::size_t>(rank.node.get())).host,
                            wide, rank.local_rank, gpus_text(rank), shell_join(rank.argv)));
}

Result<void> print_explained(const job::Prepared& job, const Context& context) {
  const auto lines = plan::explain(job.tree);
  if (context.common.json) {
    Json settings = Json::array();
    for (const auto& line : lines)
      settings.push_back({{"path", line.path}, {"value", line.value}, {"source", line.source}});
    return context.console.data(to_pretty_text({{"schema", "dlrun.explain/1"}, {"settings", settings}}));
  }
  std::size_t path_width = 0, value_width = 0;
  for (const auto& line : lines) {
    path_width = std::max(path_width, line.path.size());
    value_width = std::max(value_width, std::min<std::size_t>(line.value.size(), 40));
  }
  for (const auto& line : lines)
    context.console.out(fmt::format("{:<{}}  {:<{}}  {}", line.path, path_width, line.value, value_width,
                                    context.console.tinted_out(line.source, Tint::dim)));
  return {};
}

}  // namespace

Result<int> show_plan(const PlanOptions& options, const Context& context) {
  const job::Request request = TRY(request_of(options.job, context.environment));
  const job::Prepared job = TRY(job::prepare(request, SystemClock().now()));
  if (!options.scripts.empty()) {
    TRY(job::write_node_scripts(job.plan, request.installation.data, options.scripts));
    context.console.say(
        fmt::format("dlrun: wrote {} node script(s) into {}", job.plan.nodes.size(), options.scripts));
  }
  if (options.explain)
    TRY(print_explained(job, context));
  else if (context.common.json)
    TRY(context.console.data(to_pretty_text(plan::to_json(job.plan))));
  else
    print_plan(job, context.console);
  return 0;
}

}  // namespace dlrun::cli
