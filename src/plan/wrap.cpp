#include "src/plan/wrap.hpp"

#include <algorithm>

#include "src/plan/role_tasks.hpp"

namespace dlrun::plan {

Argv wrapped(const std::optional<Wrap>& wrap, Rank rank, Argv argv) {
  if (!wrap) return argv;
  const std::vector<Rank>& ranks = wrap->ranks;
  if (!ranks.empty() && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) return argv;
  argv.insert(argv.begin(), wrap->command.begin(), wrap->command.end());
  return argv;
}

Result<void> check_wrap(const JobSpec& spec, const Plan& plan) {
  if (!spec.launch.wrap) return {};
  for (const Rank rank : spec.launch.wrap->ranks)
    if (static_cast<std::size_t>(rank.get()) >= plan.ranks.size())
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("launch.wrap.ranks names rank {}, and the job has {}", rank,
                                            count_text(plan.ranks.size(), "rank")),
                        .where = place_of(spec, "launch.wrap.ranks"),
                        .hint = fmt::format("ranks count from 0 to {}", plan.ranks.size() - 1)});
  if (spec.launch.stage && spec.framework == "builtin")
    return fail(Error{.kind = ErrorKind::input,
                      .what =
                          "launch.wrap and launch.stage are both set: the command would look for dlrun-train "
                          "where it is not",
                      .where = place_of(spec, "launch.wrap"),
                      .hint = "install dlrun on the nodes, or remove one of the two"});
  return {};
}

}  // namespace dlrun::plan
