// See control.hpp.
#include "runtime/train/control.hpp"

#include <cerrno>
#include <cstring>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kMaxWaiting = 256 << 10;

UniqueFd connect_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof address.sun_path) return UniqueFd();
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // EAGAIN: the agent has not yet taken the ranks before this one; it will in a moment.
  for (int attempt = 0; fd && attempt < 50; ++attempt) {
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    if (errno != EAGAIN && errno != EINTR) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return UniqueFd();
}

bool is_true(const Json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

ControlChannel ControlChannel::open(const std::string& socket_name, int rank) {
  ControlChannel out;
  out.fd_ = connect_to(socket_name);
  out.send(Json{{"rank", rank}}, Importance::kept);
  return out;
}

void ControlChannel::send(const Json& message, Importance importance) {
  if (!fd_) return;
  if (importance == Importance::progress && !out_.empty()) return push();
  if (out_.size() < kMaxWaiting) out_ += dlrun::to_text(message) + "\n";
  push();
}

void ControlChannel::push() {
  while (fd_ && !out_.empty()) {
    const ssize_t put = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (put < 0) return fd_.reset();
    out_.erase(0, static_cast<std::size_t>(put));
  }
}

void ControlChannel::receive() {
  char buffer[4096];
  while (fd_) {
    const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0 || in_.size() > kMaxWaiting) return fd_.reset();
    in_.append(buffer, static_cast<std::size_t>(got));
  }
}

Requests ControlChannel::poll() {
  push();
  receive();
  const std::size_t end = in_.rfind('\n');
  if (end == std::string::npos) return {};
  const Requests out = read_requests(std::string_view(in_).substr(0, end + 1));
  in_.erase(0, end + 1);
  return out;
}

void ControlChannel::flush(Seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (push(); fd_ && !out_.empty() && std::chrono::steady_clock::now() < deadline; push()) {
    pollfd ready{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    ::poll(&ready, 1, 50);
  }
}

Requests read_requests(std::string_view lines) {
  Requests out;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    const auto message = parse_json(line, "control");
    if (!message || !message->is_object() || !message->contains("checkpoint")) continue;
    (is_true(*message, "stop") ? out.stop : out.save) = true;
  }
  return out;
}

}  // namespace dlrun::runtime
