// See socket_transport.hpp.
#include "runtime/comm/transport/socket_transport.hpp"

#include <array>
#include <cerrno>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace dlrun::runtime {
namespace {

constexpr std::size_t kHeader = sizeof(std::uint64_t);
constexpr int kRestMs = 100;  // after which somebody may have given up

// What is left of a message: of its length, and of its bytes.
struct Rest {
  std::array<iovec, 2> pieces{};
  msghdr header{};

  Rest(std::uint64_t& length, std::span<std::byte> bytes, std::size_t done) {
    const std::size_t of_header = std::min(done, kHeader), of_bytes = done - of_header;
    pieces[0] = {reinterpret_cast<std::byte*>(&length) + of_header, kHeader - of_header};
    pieces[1] = {bytes.data() + of_bytes, bytes.size() - of_bytes};
    header.msg_iov = pieces.data();
    header.msg_iovlen = pieces.size();
  }
};

bool must_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

Error gone_error(const ConnectedRank& link) {
  return {.kind = ErrorKind::lost, .what = link.name() + " is gone: its connection was closed"};
}
tl::unexpected<Error> gone(const ConnectedRank& link) {
  return fail(gone_error(link));
}

}  // namespace

SocketTransport::SocketTransport(int rank, std::vector<ConnectedRank> peers, const JobThread& thread)
    : rank_(rank), thread_(thread) {
  for (ConnectedRank& link : peers) peers_.push_back({std::move(link), {}, {}});
}

Transport::Ticket SocketTransport::add(std::deque<Message>& queue, std::span<std::byte> bytes) {
  const std::size_t ticket = next_ticket_++;
  under_way_.emplace(ticket, false);
  queue.push_back({ticket, bytes, bytes.size(), 0});
  return Ticket{ticket};
}

Result<Transport::Ticket> SocketTransport::send_start(std::span<const std::byte> data, int to) {
  Peer& peer = this->peer(to);
  // One form of message serves both ways; what is sent is only read.
  const Ticket ticket = add(peer.leaving, {const_cast<std::byte*>(data.data()), data.size()});
  Moved moved = Moved::no;
  if (peer.leaving.size() == 1) TRY(send_some(peer, moved));
  return ticket;
}

Result<Transport::Ticket> SocketTransport::receive_start(std::span<std::byte> data, int from) {
  return add(peer(from).arriving, data);
}

Result<void> SocketTransport::wait(Ticket ticket) {
  return wait_any(std::span(&ticket, 1)).map([](std::size_t) {});
}

Result<std::size_t> SocketTransport::wait_any(std::span<const Ticket> tickets) {
  for (;;) {
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      const auto found = under_way_.find(static_cast<std::size_t>(tickets[i]));
      if (found == under_way_.end()) return fail(ErrorKind::internal, "a message was awaited twice");
      if (!found->second) continue;
      under_way_.erase(found);
      return i;
    }
    if (thread_.abandoned()) return fail(ErrorKind::lost, "a message was cancelled: this rank ends");
    if (TRY(move_all()) == Moved::no) rest();
  }
}

std::optional<Error> SocketTransport::lost(int rank) const {
  if (rank == rank_) return std::nullopt;
  const ConnectedRank& link = peers_[place(rank)].link;
  pollfd polled{.fd = link.socket.get(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&polled, 1, 0) <= 0 || polled.revents == 0) return std::nullopt;
  return gone_error(link);
}

Result<SocketTransport::Moved> SocketTransport::move_all() {
  Moved moved = Moved::no;
  for (Peer& peer : peers_) {
    if (!peer.leaving.empty()) TRY(send_some(peer, moved));
    if (!peer.arriving.empty()) TRY(receive_some(peer, moved));
  }
  return moved;
}

void SocketTransport::finish_first(std::deque<Message>& queue) {
  under_way_[queue.front().ticket] = true;
  queue.pop_front();
}

Result<void> SocketTransport::send_some(Peer& to, Moved& moved) {
  while (!to.leaving.empty()) {
    Message& message = to.leaving.front();
    const Rest rest(message.length, message.bytes, message.done);
    const ssize_t sent = ::sendmsg(to.link.socket.get(), &rest.header, MSG_NOSIGNAL);
    if (sent < 0 && must_wait()) return {};
    if (sent < 0) return gone(to.link);
    moved = Moved::yes;
    message.done += static_cast<std::size_t>(sent);
    if (message.done < kHeader + message.bytes.size()) return {};
    finish_first(to.leaving);
  }
  return {};
}

Result<void> SocketTransport::receive_some(Peer& from, Moved& moved) {
  while (!from.arriving.empty()) {
    Message& message = from.arriving.front();
    Rest rest(message.length, message.bytes, message.done);
    const ssize_t got = ::recvmsg(from.link.socket.get(), &rest.header, 0);
    if (got < 0 && must_wait()) return {};
    if (got <= 0) return gone(from.link);
    moved = Moved::yes;
    message.done += static_cast<std::size_t>(got);
    if (message.done >= kHeader && message.length != message.bytes.size())
      return fail(ErrorKind::internal, "{} sent {} bytes; expected {}", from.link.name(), message.length,
                  message.bytes.size());
    if (message.done < kHeader + message.bytes.size()) continue;
    finish_first(from.arriving);
  }
  return {};
}

void SocketTransport::rest() const {
  std::vector<pollfd> fds;
  for (const Peer& peer : peers_) {
    const int events = (peer.leaving.empty() ? 0 : POLLOUT) | (peer.arriving.empty() ? 0 : POLLIN);
    if (events != 0) fds.push_back({peer.link.socket.get(), static_cast<short>(events), 0});
  }
  ::poll(fds.data(), fds.size(), kRestMs);
}

}  // namespace dlrun::runtime
