#include "src/agent/peer_sink.hpp"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

#include "src/process/listening_socket.hpp"

namespace dlrun::agent {
namespace {

constexpr std::size_t kBuffer = 256 << 10;
constexpr int kReadsPerTurn = 16;  // others of the loop have their turn, too

}  // namespace

Result<std::unique_ptr<PeerSink>> PeerSink::open(EventLoop& loop, std::string token) {
  UniqueFd socket = TRY(listen_on_any_port());
  return std::unique_ptr<PeerSink>(new PeerSink(loop, std::move(token), std::move(socket)));
}

PeerSink::PeerSink(EventLoop& loop, std::string token, UniqueFd socket)
    : loop_(loop),
      token_(std::move(token) + "\n"),
      port_(port_of(socket)),
      buffer_(kBuffer, '\0'),
      listener_(loop, std::move(socket),
                {.connected = [this](UniqueFd fd) { add(std::move(fd)); },
                 .free_a_place =
                     [this] {
                       if (callers_.empty()) return false;
                       drop(callers_.begin());
                       return true;
                     }}) {}

PeerSink::~PeerSink() {
  while (!callers_.empty()) drop(callers_.begin());
}

void PeerSink::add(UniqueFd fd) {
  callers_.push_back({std::move(fd)});
  const Place caller = std::prev(callers_.end());
  loop_.watch(caller->fd.get(), POLLIN, [this, caller](short) { read_from(caller); });
}

void PeerSink::read_from(Place caller) {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const ssize_t got = ::read(caller->fd.get(), buffer_.data(), buffer_.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0 || !is_welcome(*caller, std::string_view(buffer_).substr(0, static_cast<std::size_t>(got))))
      return drop(caller);
  }
}

bool PeerSink::is_welcome(Caller& caller, std::string_view bytes) const {
  if (caller.proven) return true;
  caller.line.append(bytes.substr(0, token_.size() - caller.line.size()));
  if (!std::string_view(token_).starts_with(caller.line)) return false;
  if (caller.line.size() == token_.size()) caller.proven = true;
  return true;
}

void PeerSink::drop(Place caller) {
  loop_.unwatch(caller->fd.get());
  callers_.erase(caller);
}

}  // namespace dlrun::agent
