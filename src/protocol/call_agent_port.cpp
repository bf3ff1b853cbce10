#include "src/protocol/call_agent_port.hpp"

#include <cerrno>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun {
namespace {

constexpr int kOneTryMs = 3000;  // a packet that is lost once is sent again after one second
constexpr useconds_t kPauseUs = 200'000;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

// Waits for `fd` as long as one try may take.
bool is_ready(int fd, short events) {
  pollfd polled{fd, events, 0};
  return ::poll(&polled, 1, kOneTryMs) == 1;
}

Result<UniqueFd> connect_to(const addrinfo& address) {
  UniqueFd fd(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(ErrorKind::unavailable, "{}", system_reason(errno));
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return fail(ErrorKind::unavailable, "{}", system_reason(errno));
    if (!is_ready(fd.get(), POLLOUT)) return fail(ErrorKind::unavailable, "no answer");
    int problem = 0;
    socklen_t length = sizeof problem;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &length);
    if (problem != 0) return fail(ErrorKind::unavailable, "{}", system_reason(problem));
  }
  return fd;
}

// One line and not a byte more: what follows it belongs to the stream.
Result<std::string> read_line(const UniqueFd& fd) {
  std::string line;
  while (line.size() < kMaxHandshakeLine) {
    char c = 0;
    const ssize_t got = ::read(fd.get(), &c, 1);
    if (got == 1 && c == '\n') return line;
    if (got == 1) line += c;
    if (got == 0) return fail(ErrorKind::unavailable, "it hung up");
    if (got < 0 && errno != EAGAIN && errno != EINTR)
      return fail(ErrorKind::unavailable, "{}", system_reason(errno));
    if (got < 0 && !is_ready(fd.get(), POLLIN)) return fail(ErrorKind::unavailable, "it says nothing");
  }
  return fail(ErrorKind::unavailable, "it says too much");
}

Result<void> prove(const UniqueFd& fd, const Token& token, const AgentIdentity& identity) {
  AgentHandshake handshake(token, identity);
  const std::string answer = TRY(handshake.answer(TRY(read_line(fd))));
  if (::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(answer.size()))
    return fail(ErrorKind::unavailable, "it does not listen");
  if (!handshake.is_receipt(TRY(read_line(fd))))
    return fail(ErrorKind::unavailable, "it cannot prove that it is of this run");
  return {};
}

Result<UniqueFd> try_address(const std::string& name, Port port, const Token& token,
                             const AgentIdentity& identity) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int problem = ::getaddrinfo(name.c_str(), fmt::format("{}", port).c_str(), &hints, &list);
      problem != 0)
    return fail(ErrorKind::unavailable, "{}", ::gai_strerror(problem));
  const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
  Result<UniqueFd> last = fail(ErrorKind::unavailable, "it has no address");
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    last = connect_to(*one);
    if (last)
      if (auto proven = prove(*last, token, identity); !proven) last = fail(std::move(proven).error());
    if (last) return last;
  }
  return last;
}

}  // namespace

Result<UniqueFd> call_agent_port(std::string_view whom, const std::vector<std::string>& addresses, Port port,
                                 const Token& token, const AgentIdentity& identity, Seconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  Error error{.kind = ErrorKind::unavailable,
              .what = fmt::format("{} does not answer at port {}", whom, port),
              .where = {},
              .hint = "does a firewall keep the nodes from each other?"};
  do {
    error.also.clear();
    for (const std::string& address : addresses) {
      auto fd = try_address(address, port, token, identity);
      if (fd) {
        const int on = 1;
        ::setsockopt(fd->get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        ::setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fd;
      }
      error.also.push_back(fmt::format("{}: {}", address, fd.error().what));
    }
    ::usleep(kPauseUs);
  } while (std::chrono::steady_clock::now() < until);
  return fail(std::move(error));
}

}  // namespace dlrun
