#include "src/agent/open_files.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "src/base/file.hpp"

namespace dlrun::agent {
namespace {

constexpr rlim_t kMaxRaised = rlim_t{1} << 20;  // "unlimited" is a number that no kernel has tables for
constexpr std::size_t kOfARank = 3;             // its log, its standard output and error
constexpr std::size_t kWhileStarting = 12;      // of a child that is being started, and of the loop

}  // namespace

Result<rlimit> raise_open_files() {
  rlimit before{};
  if (::getrlimit(RLIMIT_NOFILE, &before) != 0)
    return fail(ErrorKind::internal, "getrlimit: {}", system_reason(errno));
  rlimit raised = before;
  raised.rlim_cur = std::max(before.rlim_cur, std::min(before.rlim_max, kMaxRaised));
  ::setrlimit(RLIMIT_NOFILE, &raised);  // where that is refused, the count before the start says so
  return before;
}

Result<void> check_open_files(std::size_t open, std::size_t ranks, rlim_t limit) {
  const std::size_t needed = open + ranks * kOfARank + kWhileStarting;
  if (needed <= limit) return {};
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("{} ranks on one node need about {} open files, and the limit is {}", ranks,
                                needed, limit),
            .where = {},
            .hint = "raise the hard limit of open files there (ulimit -Hn, limits.conf, LimitNOFILE of the "
                    "scheduler's daemon), or start fewer ranks per node",
            .also = {}});
}

Result<void> check_open_files(std::size_t ranks) {
  rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0)
    return fail(ErrorKind::internal, "getrlimit: {}", system_reason(errno));
  std::error_code problem;
  std::filesystem::directory_iterator open("/proc/self/fd", problem);
  if (problem) return {};  // an exhausted table is said by the first rank that does not start
  return check_open_files(static_cast<std::size_t>(std::distance(begin(open), end(open))), ranks,
                          now.rlim_cur);
}

}  // namespace dlrun::agent
