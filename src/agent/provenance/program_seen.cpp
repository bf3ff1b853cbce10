#include "src/agent/provenance/program_seen.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/process/descendants.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWrappers[] = {"bash",    "sh",     "dash",    "zsh",      "ksh",  "csh",
                                          "tcsh",    "env",    "timeout", "numactl",  "nice", "stdbuf",
                                          "taskset", "setsid", "time",    "catchsegv"};

std::string link_of(pid_t pid, const char* name) {
  std::error_code problem;
  return fs::read_symlink(fmt::format("/proc/{}/{}", pid, name), problem).string();
}

std::string text_of(pid_t pid, const char* name) {
  return read_file(fmt::format("/proc/{}/{}", pid, name)).value_or("");
}

std::vector<std::string> words_of(pid_t pid, const char* name) {
  std::vector<std::string> out = split(text_of(pid, name), '\0');
  if (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

// Down through wrappers, to what the first of them started first.
pid_t program_below(pid_t rank) {
  constexpr int kMaxWrappers = 8;
  pid_t out = rank;
  for (int i = 0; i < kMaxWrappers && is_wrapper(link_of(out, "exe")); ++i) {
    const std::vector<pid_t> below = descendants_of(out);
    if (below.empty()) break;
    out = below.front();
  }
  return out;
}

bool is_library(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return name.ends_with(".so") || name.find(".so.") != std::string_view::npos;
}

}  // namespace

bool is_wrapper(std::string_view executable) {
  const std::string_view name = executable.substr(executable.rfind('/') + 1);
  return std::find(std::begin(kWrappers), std::end(kWrappers), name) != std::end(kWrappers);
}

// "7f0a10-7f0a20 r-xp 00001000 fe:01 1234    /usr/lib/libz.so.1": the code of each is mapped once.
std::vector<std::string> libraries_in(std::string_view maps) {
  std::set<std::string> out;
  for (const std::string& line : split(std::string(maps), '\n')) {
    const std::size_t rights = line.find(' '), file = line.find('/');
    if (rights == std::string::npos || file == std::string::npos || line.size() < rights + 4) continue;
    if (line[rights + 3] == 'x' && !line.ends_with(" (deleted)") && is_library(line.substr(file)))
      out.insert(line.substr(file));
  }
  return {out.begin(), out.end()};
}

std::optional<ProgramSeen> see_program(pid_t rank) {
  ProgramSeen out;
  out.pid = program_below(rank);
  out.executable = link_of(out.pid, "exe");
  if (out.executable.empty()) return std::nullopt;
  out.argv = words_of(out.pid, "cmdline");
  out.environment = Environment::from_entries(words_of(out.pid, "environ"));
  out.working_directory = link_of(out.pid, "cwd");
  out.libraries = libraries_in(text_of(out.pid, "maps"));
  out.root = fmt::format("/proc/{}/root", out.pid);
  return out;
}

}  // namespace dlrun::agent
