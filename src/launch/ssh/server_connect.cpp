#include "src/launch/ssh/server_connect.hpp"

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "src/base/file.hpp"
#include "src/base/units.hpp"
#include "src/process/socket_option.hpp"

namespace dlrun::launch {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

int milliseconds_until(Ticks deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

Result<Addresses> resolve(const std::string& host, Port port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int rc = ::getaddrinfo(host.c_str(), std::to_string(port.get()).c_str(), &wanted, &found);
  if (rc == 0) return Addresses(found, &::freeaddrinfo);
  return fail({.kind = ErrorKind::unavailable,
               .what = fmt::format("the host name {} cannot be resolved here ({})", host, ::gai_strerror(rc)),
               .hint = "is it in /etc/hosts, the name service or ssh_config?"});
}

Result<UniqueFd> connect_to(const addrinfo& address, const Alarm& alarm, Ticks deadline) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(ErrorKind::unavailable, "cannot create a socket: {}", system_reason(errno));
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  int error = errno;
  if (error == EINPROGRESS) {
    if (wait_for(fd.get(), POLLOUT, alarm, deadline) != Wake::ready)
      error = ETIMEDOUT;
    else {
      socklen_t size = sizeof error;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) return fd;
  return fail(ErrorKind::unavailable, "{}", system_reason(error));
}

// Servers speak first. One that has enough of callers closes before it says who it is, or says why.
Result<Reached> await_first_word(UniqueFd fd, Seconds limit, const Alarm& alarm, Ticks deadline) {
  if (wait_for(fd.get(), POLLIN, alarm, deadline) != Wake::ready)
    return fail(
        {.kind = ErrorKind::unavailable,
         .what = fmt::format("it accepts connections, but its ssh server sent nothing within {}",
                             format_duration(limit)),
         .hint =
             "the node may be frozen or very busy; a longer launch.ssh.connect-timeout gives it more time"});
  std::array<char, 64> word{};
  const ssize_t got = ::recv(fd.get(), word.data(), word.size(), MSG_PEEK);
  const std::string_view text(word.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const bool turned_away = text.empty() || text.starts_with("Exceeded MaxStartups") ||
                           text.starts_with("Not allowed at this time");
  return Reached{std::move(fd), turned_away};
}

}  // namespace

Alarm::Alarm() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Alarm::ring() const {
  const std::uint64_t one = 1;
  (void)!::write(fd_.get(), &one, sizeof one);
}

void Alarm::silence() const {
  std::uint64_t rang = 0;
  (void)!::read(fd_.get(), &rang, sizeof rang);
}

Wake wait_for(int fd, short events, const Alarm& alarm, Ticks deadline) {
  std::array<pollfd, 2> polled{pollfd{alarm.fd(), POLLIN, 0}, pollfd{fd, events, 0}};
  for (;;) {
    const int ready = ::poll(polled.data(), polled.size(), milliseconds_until(deadline));
    if (polled[0].revents != 0) return Wake::alarm;
    if (ready > 0) return Wake::ready;
    if (std::chrono::steady_clock::now() >= deadline) return Wake::late;
  }
}

Result<Reached> reach_server(const std::string& host, Port port, Seconds limit, const Alarm& alarm,
                             Ticks deadline) {
  const Addresses addresses = TRY(resolve(host, port));
  std::string why;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const Ticks until = std::min(
        deadline, std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(limit));
    auto fd = connect_to(*address, alarm, until);
    if (fd) {
      set_option(fd->get(), IPPROTO_TCP, TCP_NODELAY, 1);
      return await_first_word(std::move(*fd), limit, alarm, until);
    }
    why = std::move(fd).error().what;
  }
  return fail({.kind = ErrorKind::unavailable,
               .what = fmt::format("port {}: {}", port.get(), why),
               .hint = fmt::format("try: ssh -p {} {} true", port.get(), host)});
}

}  // namespace dlrun::launch
