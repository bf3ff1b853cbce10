#include "src/health/peer_transfer.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "src/base/file.hpp"

namespace dlrun::health {
namespace {

constexpr Seconds kConnect{1.3}, kAllAddresses{2};  // a packet that is lost once is sent again after a second
constexpr std::size_t kChunk = 256 << 10, kThreads = 64;

using SteadyClock = std::chrono::steady_clock;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

bool is_writable(int fd, Seconds timeout) {
  pollfd polled{fd, POLLOUT, 0};
  return ::poll(&polled, 1, static_cast<int>(1000 * timeout.count()) + 1) == 1;
}

// Its descriptor, or why it cannot be reached.
Result<UniqueFd> connect_to(const addrinfo& address, Seconds timeout) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(ErrorKind::unavailable, "{}", system_reason(errno));
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS)
    return fail(ErrorKind::unavailable, "{}", system_reason(errno));
  if (!is_writable(fd.get(), timeout)) return fail(ErrorKind::unavailable, "no answer");
  int problem = 0;
  socklen_t length = sizeof problem;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &length);
  if (problem != 0) return fail(ErrorKind::unavailable, "{}", system_reason(problem));
  return fd;
}

Result<UniqueFd> connect_to(const std::string& name, int port, SteadyClock::time_point end) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int code = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &list); code != 0)
    return fail(ErrorKind::unavailable, "{}", ::gai_strerror(code));
  const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
  Result<UniqueFd> last = fail(ErrorKind::unavailable, "it has no address");
  for (const addrinfo* one = list; one != nullptr && !last; one = one->ai_next)
    last = connect_to(*one, std::clamp(Seconds(end - SteadyClock::now()), Seconds(0), kConnect));
  return last;
}

Result<UniqueFd> connect_to(const Peer& peer) {
  Result<UniqueFd> first = fail(ErrorKind::unavailable, "it has no address");
  bool tried = false;
  const auto end = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(kAllAddresses);
  for (const std::string& address : peer.addresses) {
    if (tried && SteadyClock::now() > end) break;
    auto fd = connect_to(address, peer.port, end);
    if (fd) return fd;
    if (!std::exchange(tried, true)) first = std::move(fd);
  }
  return first;
}

std::int64_t acknowledged(int fd, std::int64_t sent) {
  tcp_info info{};
  socklen_t length = sizeof info;
  const bool told = ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
                    length >= offsetof(tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked;
  return told ? std::min(sent, static_cast<std::int64_t>(info.tcpi_bytes_acked)) : sent;
}

// Until the time is over, or the other side takes no more.
void send_for(Seconds time, int fd, Transfer& out) {
  const std::string chunk(kChunk, '\0');
  const auto began = SteadyClock::now();
  std::int64_t sent = 0;
  for (Seconds past{0}; past < time; past = SteadyClock::now() - began) {
    const ssize_t put = ::send(fd, chunk.data(), chunk.size(), MSG_NOSIGNAL);
    if (put > 0) sent += put;
    if (put < 0 && errno != EAGAIN && errno != EINTR) break;
    if (put < 0) is_writable(fd, time - past);
  }
  out.took = SteadyClock::now() - began;
  out.bytes = acknowledged(fd, sent);
}

}  // namespace

Result<UniqueFd> connect_to_peer(const Peer& peer, const std::string& line) {
  UniqueFd fd = TRY(connect_to(peer));
  const std::string whole = line + "\n";
  if (::send(fd.get(), whole.data(), whole.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(whole.size()))
    return fail(ErrorKind::unavailable, "{}", system_reason(errno));
  return fd;
}

Transfer transfer_to(const Peer& peer, const std::string& token, Seconds send) {
  Transfer out;
  const auto began = SteadyClock::now();
  const auto fd = connect_to_peer(peer, token);
  out.connect = SteadyClock::now() - began;
  if (!fd) return out.problem = fd.error().what, out;
  if (send.count() > 0) send_for(send, fd->get(), out);
  return out;
}

std::vector<Transfer> transfer_to_all(const std::vector<Peer>& peers, const std::string& token,
                                      Seconds send) {
  std::vector<Transfer> out(peers.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  const auto work = [&] {
    for (std::size_t peer = next++; peer < peers.size(); peer = next++)
      out[peer] = transfer_to(peers[peer], token, send);
  };
  try {
    while (threads.size() < std::min(kThreads, peers.size())) threads.emplace_back(work);
  } catch (const std::system_error&) {  // the limit of threads: fewer do it
  }
  if (threads.empty()) work();
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace dlrun::health
