#include "src/agent/port_holder.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

namespace fs = std::filesystem;

struct Socket {
  std::string inode, user;
};

// A line of /proc/net/tcp: "0: 00000000:08AE 00000000:0000 0A ... uid timeout inode ...".
std::optional<Socket> socket_of_line(const std::string& line, const std::string& port) {
  std::vector<std::string> fields = split(line, ' ');
  std::erase(fields, "");
  constexpr std::size_t local = 1, state = 3, user = 7, inode = 9;
  if (fields.size() <= inode || !fields[local].ends_with(port)) return std::nullopt;
  constexpr const char* time_wait = "06";  // nobody's any more
  if (fields[state] == time_wait) return std::nullopt;
  return Socket{fields[inode], fields[user]};
}

std::optional<Socket> socket_at(int port) {
  const std::string suffix = fmt::format(":{:04X}", port);
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string text = read_file(table).value_or("");
    for (const std::string& line : split(text, '\n'))
      if (auto socket = socket_of_line(line, suffix)) return socket;
  }
  return std::nullopt;
}

bool holds(const fs::path& process, const std::string& link) {
  std::error_code problem;
  for (const auto& fd : fs::directory_iterator(process / "fd", problem)) {
    std::error_code unreadable;
    if (fs::read_symlink(fd.path(), unreadable) == link) return true;
  }
  return false;
}

std::string command_of(const fs::path& process) {
  std::string text = read_file(process / "cmdline").value_or("");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  constexpr std::size_t kMaxText = 60;
  return text.size() > kMaxText ? text.substr(0, kMaxText) + "..." : text;
}

}  // namespace

std::string port_holder(int port) {
  const auto socket = socket_at(port);
  if (!socket) return "another program";
  const std::string link = "socket:[" + socket->inode + "]";
  std::error_code problem;
  for (const auto& process : fs::directory_iterator("/proc", problem)) {
    const std::string pid = process.path().filename().string();
    if (parse_integer(pid, 1, 1 << 30) && holds(process.path(), link))
      return fmt::format("process {} ({})", pid, command_of(process.path()));
  }
  return "a process of user " + socket->user;
}

}  // namespace dlrun
