#include "src/process/descendants.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

struct ProcessLine {
  pid_t parent = 0;
  char state = '?';
};

// "pid (name) S ppid ...": the name may hold blanks and brackets, so the last ')' counts.
std::optional<ProcessLine> read_stat(const std::string& pid) {
  const auto text = read_file("/proc/" + pid + "/stat");
  if (!text) return std::nullopt;
  const std::size_t close = text->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = split(std::string_view(*text).substr(close + 1), ' ');
  if (fields.size() < 3 || fields[1].empty()) return std::nullopt;
  const auto parent = parse_integer(fields[2], 0, 1 << 30);
  if (!parent) return std::nullopt;
  return ProcessLine{static_cast<pid_t>(*parent), fields[1][0]};
}

std::multimap<pid_t, std::pair<pid_t, char>> children_of_all() {
  std::multimap<pid_t, std::pair<pid_t, char>> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return out;
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto pid = parse_integer(entry->d_name, 1, 1 << 30);
    if (!pid) continue;
    if (const auto line = read_stat(entry->d_name))
      out.emplace(line->parent, std::pair(static_cast<pid_t>(*pid), line->state));
  }
  return out;
}

}  // namespace

Result<void> become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return fail(ErrorKind::internal, "cannot become subreaper: {}", system_reason(errno));
  return {};
}

std::vector<pid_t> descendants(const std::vector<pid_t>& except) {
  return descendants_of(::getpid(), except);
}

std::vector<pid_t> descendants_of(pid_t root, const std::vector<pid_t>& except) {
  const auto children = children_of_all();
  std::vector<pid_t> found{root};
  std::vector<pid_t> alive;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) {
      if (std::find(except.begin(), except.end(), child->second.first) != except.end()) continue;
      found.push_back(child->second.first);
      if (child->second.second != 'Z' && child->second.second != 'X') alive.push_back(child->second.first);
    }
  }
  return alive;
}

void reap_orphans(const std::vector<pid_t>& own) {
  for (;;) {
    siginfo_t ended{};
    // Looks without reaping: one of `own` must stay for the one who waits for it, and is told of it by the
    // next SIGCHLD.
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    if (std::find(own.begin(), own.end(), ended.si_pid) != own.end()) return;
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace dlrun
