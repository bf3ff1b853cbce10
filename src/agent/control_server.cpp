#include "src/agent/control_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {
namespace {

// Reports are flat; indenting a deep one in a record would grow with the square of its depth.
constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxConnections = 4096;

bool is_deeper(const Json& value, int levels) {
  if (!value.is_structured()) return false;
  return levels == 0 || std::any_of(value.begin(), value.end(),
                                    [levels](const Json& each) { return is_deeper(each, levels - 1); });
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::string& path, EventLoop& loop,
                                                            Callbacks callbacks) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail({.kind = ErrorKind::unavailable,
                 .what = fmt::format("the control socket's path is longer than {} characters: {}",
                                     sizeof address.sun_path - 1, path),
                 .where = {},
                 .hint = "set TMPDIR to a folder with a shorter name"});
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  constexpr int backlog = 256;
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), backlog) != 0)
    return fail(ErrorKind::unavailable, "cannot listen on {}: {}", path, system_reason(errno));
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(fd), loop, std::move(callbacks)));
}

ControlServer::ControlServer(UniqueFd listener, EventLoop& loop, Callbacks callbacks)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      listener_(loop, std::move(listener),
                {.connected = [this](UniqueFd connection) { add(std::move(connection)); },
                 .free_a_place = [this] { return drop_oldest(); }}) {}

ControlServer::~ControlServer() {
  for (const auto& [fd, connection] : connections_) loop_.unwatch(fd);
}

void ControlServer::add(UniqueFd fd) {
  if (connections_.size() >= kMaxConnections) drop_oldest();
  const int number = fd.get();
  connections_[number] = Connection{std::move(fd), {}, std::nullopt, ++clock_};
  loop_.watch(number, POLLIN, [this, number](short) { (void)read_from(number); });
  if (!standing_.empty())
    (void)!::send(number, standing_.data(), standing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ControlServer::drop(int fd) {
  loop_.unwatch(fd);
  connections_.erase(fd);
}

// One that never said its rank is missed least, then the one that has been silent for longest.
bool ControlServer::drop_oldest() {
  const auto oldest =
      std::min_element(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.rank.has_value(), a.second.heard) <
               std::pair(b.second.rank.has_value(), b.second.heard);
      });
  if (oldest == connections_.end()) return false;
  drop(oldest->first);
  return true;
}

// Its connection may wait to be taken, and its first line, with its number, to be read.
void ControlServer::ended(Rank rank) {
  listener_.take_waiting();
  std::vector<int> whose;
  for (const auto& [fd, connection] : connections_)
    if (connection.rank.value_or(rank) == rank) whose.push_back(fd);
  constexpr int kMaxChunks = 1024;  // another process may have the connection, too, and go on
  for (const int fd : whose)
    for (int i = 0; i < kMaxChunks && connections_.contains(fd) && read_from(fd) == Got::some; ++i) {
    }
}

ControlServer::Got ControlServer::read_from(int fd) {
  Connection& connection = connections_.at(fd);
  connection.heard = ++clock_;
  std::array<char, 16384> chunk;
  const ssize_t got = ::read(fd, chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Got::nothing;
  if (got <= 0) {
    drop(fd);
    return Got::nothing;
  }
  for (const std::string& line : connection.lines.add({chunk.data(), static_cast<std::size_t>(got)}))
    if (!take_line(connection, line)) {
      drop(fd);
      return Got::nothing;
    }
  return Got::some;
}

bool ControlServer::take_line(Connection& connection, const std::string& line) {
  if (trim(line).empty()) return true;
  const auto report = parse_json(line, "control");
  const std::string problem = !report                         ? report.error().what
                              : !report->is_object()          ? "not a JSON object"
                              : is_deeper(*report, kMaxDepth) ? "nested too deeply"
                                                              : "";
  if (!problem.empty()) {
    callbacks_.log("control channel: " + problem + ": " + line.substr(0, 80));
    return false;
  }
  if (const auto rank = field<int>(*report, "rank", "control"); rank) connection.rank = Rank(*rank);
  if (!connection.rank) {
    callbacks_.log("control channel: the first line must have a \"rank\": " + line.substr(0, 80));
    return false;
  }
  callbacks_.report(*connection.rank, *report);
  return true;
}

void ControlServer::tell_all(const Json& request) {
  const std::string line = to_text(request) + "\n";
  if (request.contains("stop")) standing_ = line;
  // A rank that does not read its requests loses them; the file request reaches it all the same.
  for (const auto& [fd, connection] : connections_)
    (void)!::send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace dlrun::agent
