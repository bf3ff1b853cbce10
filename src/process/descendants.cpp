#include "src/process/descendants.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
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

using Children = std::vector<std::pair<pid_t, char>>;

// The numbers among the names of a folder of /proc.
std::vector<std::string> numbers_in(const std::string& folder) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr)
    if (parse_integer(entry->d_name, 1, 1 << 30)) out.emplace_back(entry->d_name);
  return out;
}

// What a process has below it, by the lists of its threads. A list that changes while it is read may lack
// somebody, but never somebody of ours: only we reap our children, and a child's orphans come to us before
// that.
Children listed_children(pid_t parent) {
  Children out;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task/";
  for (const std::string& task : numbers_in(tasks)) {
    const auto list = read_file(tasks + task + "/children");
    if (!list) continue;
    for (const std::string& pid : split(*list, ' '))
      if (const auto number = parse_integer(pid, 1, 1 << 30))
        if (const auto line = read_stat(pid)) out.emplace_back(static_cast<pid_t>(*number), line->state);
  }
  return out;
}

// For kernels without those lists: everybody is asked for its parent.
std::multimap<pid_t, std::pair<pid_t, char>> children_of_all() {
  std::multimap<pid_t, std::pair<pid_t, char>> out;
  for (const std::string& pid : numbers_in("/proc"))
    if (const auto line = read_stat(pid))
      out.emplace(line->parent, std::pair(static_cast<pid_t>(*parse_integer(pid, 1, 1 << 30)), line->state));
  return out;
}

std::function<Children(pid_t)> family_tree() {
  const std::string me = std::to_string(::getpid());
  if (::access(("/proc/" + me + "/task/" + me + "/children").c_str(), R_OK) == 0) return listed_children;
  return [all = children_of_all()](pid_t parent) {
    Children out;
    const auto [first, last] = all.equal_range(parent);
    for (auto child = first; child != last; ++child) out.push_back(child->second);
    return out;
  };
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
  const auto children_of = family_tree();
  std::vector<pid_t> found{root};
  std::vector<pid_t> alive;
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& [pid, state] : children_of(found[i])) {
      if (std::find(except.begin(), except.end(), pid) != except.end()) continue;
      found.push_back(pid);
      if (state != 'Z' && state != 'X') alive.push_back(pid);
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
