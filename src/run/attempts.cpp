#include "src/run/attempts.hpp"

#include <algorithm>

#include "src/base/exit_code.hpp"
#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

// Faults of the job or of its folders are the same on every node.
bool is_of_the_job(int code) {
  for (const ExitCode own : {ExitCode::usage, ExitCode::input, ExitCode::allocation, ExitCode::io,
                             ExitCode::internal, ExitCode::again})
    if (code == to_int(own)) return true;
  return false;
}

}  // namespace

bool Attempts::should_retry(const Outcome& outcome) {
  if (left_ == 0 || outcome.exit_code == 0 || outcome.interrupted_by) return false;
  if (outcome.first_failure && outcome.first_failure->work_was_done) return false;
  if (outcome.walltime.stage != WalltimeEnd::Stage::none) return false;  // no time is left for another
  for (const std::string& host : outcome.bad_hosts) bad_.insert(host);
  const bool node_failed = !outcome.bad_hosts.empty();
  if (!node_failed && (!outcome.first_failure || is_of_the_job(outcome.exit_code))) return false;
  const std::string host = outcome.first_failure ? outcome.first_failure->host : std::string();
  if (!node_failed && !host.empty() && host == last_failed_) suspects_.insert(host);
  last_failed_ = host;
  --left_;
  return true;
}

std::set<std::string> Attempts::left_out(const Allocation& allocation) const {
  const auto nodes_without = [&](const std::set<std::string>& hosts) {
    return static_cast<std::size_t>(
        std::count_if(allocation.nodes.begin(), allocation.nodes.end(),
                      [&](const AllocatedNode& node) { return !hosts.contains(node.host.get()); }));
  };
  std::set<std::string> out = bad_;
  for (const std::string& host : suspects_) {
    std::set<std::string> more = out;
    more.insert(host);
    if (nodes_without(more) >= nodes_) out = std::move(more);
  }
  return out;
}

Result<Allocation> Attempts::without_bad_nodes(const Allocation& allocation) const {
  Allocation out = allocation;
  const std::set<std::string> without = left_out(allocation);
  std::erase_if(out.nodes, [&](const AllocatedNode& node) { return without.contains(node.host.get()); });
  if (out.nodes.size() >= nodes_) return out;
  return fail(
      Error{.kind = ErrorKind::lost,
            .what = fmt::format(
                "there is no spare node for another attempt: the run needs {}, and without {} the allocation "
                "has {}",
                nodes_, join(std::vector(bad_.begin(), bad_.end()), ", "), out.nodes.size()),
            .where = {},
            .hint = "ask the scheduler for one node more than the job's resources.nodes",
            .also = {}});
}

}  // namespace dlrun::job
