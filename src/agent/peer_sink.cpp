#include "src/agent/peer_sink.hpp"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/process/listening_socket.hpp"

namespace dlrun::agent {
namespace {

constexpr std::size_t kBuffer = 256 << 10;
constexpr int kReadsPerTurn = 16;  // others of the loop have their turn, too
constexpr std::size_t kMaxLine = 256;

// The number in " ring 7"; unset where it is none.
std::optional<int> ring_of(std::string_view text) {
  constexpr std::string_view word = " ring ";
  if (!text.starts_with(word)) return std::nullopt;
  const auto number = parse_integer(text.substr(word.size()), 0, 1 << 30);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<PeerSink>> PeerSink::open(EventLoop& loop, std::string token, RingCaller ring_caller) {
  UniqueFd socket = TRY(listen_on_any_port());
  return std::unique_ptr<PeerSink>(
      new PeerSink(loop, std::move(token), std::move(ring_caller), std::move(socket)));
}

PeerSink::PeerSink(EventLoop& loop, std::string token, RingCaller ring_caller, UniqueFd socket)
    : loop_(loop),
      token_(std::move(token)),
      port_(port_of(socket)),
      ring_caller_(std::move(ring_caller)),
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
    if (got <= 0 || !is_welcome(caller, std::string_view(buffer_).substr(0, static_cast<std::size_t>(got))))
      return drop(caller);
  }
}

// A node that begins a ring sends nothing behind its line until it is answered.
bool PeerSink::is_welcome(Place caller, std::string_view bytes) {
  if (caller->proven) return true;
  const std::size_t end = bytes.find('\n');
  caller->line.append(bytes.substr(0, end));
  if (caller->line.size() > kMaxLine ||
      !std::string_view(token_).starts_with(caller->line.substr(0, token_.size())))
    return false;
  if (end == bytes.npos) return true;
  if (caller->line.size() < token_.size()) return false;
  const std::string_view rest = std::string_view(caller->line).substr(token_.size());
  caller->proven = rest.empty();
  if (const auto ring = ring_of(rest); ring && end + 1 == bytes.size()) {
    loop_.unwatch(caller->fd.get());
    ring_caller_(*ring, std::move(caller->fd));
  }
  return caller->proven;
}

void PeerSink::drop(Place caller) {
  if (caller->fd) loop_.unwatch(caller->fd.get());
  callers_.erase(caller);
}

}  // namespace dlrun::agent
