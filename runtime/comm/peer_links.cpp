#include "runtime/comm/peer_links.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <random>

#include <sys/socket.h>

#include "runtime/comm/tcp.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {

namespace {

constexpr int kStart = 120'000;  // milliseconds in which all ranks must come
constexpr int kReach = 5'000;    // and one address must answer
constexpr std::size_t kTokenLength = 32;

// What a rank says of itself when it connects, and rank 0 in answer.
struct Hello {
  std::array<char, kTokenLength> token{};
  std::int32_t rank = 0;
  std::array<char, 64> host{};
};

// What a link carries where it only watches: a farewell, or the name of a rank that is gone.
struct Notice {
  enum Kind : std::int32_t { farewell = 1, gone = 2 };
  std::int32_t kind = farewell;
  std::array<char, 124> name{};
};

template <std::size_t N>
void put(std::array<char, N>& to, const std::string& text) {
  std::memcpy(to.data(), text.data(), std::min(text.size(), N - 1));
}
template <std::size_t N>
std::string text_of(const std::array<char, N>& from) {
  return {from.data(), ::strnlen(from.data(), N)};
}

template <class T>
bool write_one(int socket, const T& value) {
  return tcp::write_all(socket, std::as_bytes(std::span(&value, 1)));
}
template <class T>
bool read_one(int socket, T& value) {
  return tcp::read_all(socket, std::as_writable_bytes(std::span(&value, 1)));
}

// So that no stranger's connection is taken for a rank's.
std::string random_token() {
  std::random_device device;
  std::string out;
  while (out.size() < kTokenLength) out += fmt::format("{:08x}", device());
  return out;
}

Hello hello_of(int rank, const std::string& token) {
  Hello out;
  std::memcpy(out.token.data(), token.data(), std::min(token.size(), kTokenLength));
  out.rank = rank;
  put(out.host, tcp::own_host());
  return out;
}

}  // namespace

std::string PeerLinks::Link::name() const {
  return fmt::format("rank {} on {}", rank, host);
}

// Rank 0 announces "TOKEN PORT HOST ADDRESS...".
Result<PeerLinks> PeerLinks::connect(int rank, int ranks, const Announce& announce) {
  if (rank != 0) {
    const std::string announced = TRY(announce({}));
    std::vector<Link> links;
    links.push_back(TRY(reach_rank_0(rank, announced)));
    return PeerLinks(rank, std::move(links));
  }
  auto listening = tcp::listen_anywhere();
  if (!listening) {
    TRY(announce({}));  // the others wait for it
    return tl::unexpected(std::move(listening).error());
  }
  const tcp::Listener listener = std::move(*listening);
  const std::string token = random_token();
  std::string text = fmt::format("{} {} {}", token, listener.port, tcp::own_host());
  for (const std::string& address : tcp::own_addresses())
    if (text.size() < 900) text += " " + address;
  TRY(announce(text));
  return PeerLinks(0, TRY(accept_all(listener.socket.get(), ranks, token)));
}

Result<std::vector<PeerLinks::Link>> PeerLinks::accept_all(int listener, int ranks,
                                                           const std::string& token) {
  std::vector<Link> out;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kStart);
  while (out.size() + 1 < static_cast<std::size_t>(ranks)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    auto socket = tcp::accept_within(listener, std::max(0, static_cast<int>(left.count())));
    if (!socket)
      return fail(Error{.kind = ErrorKind::unavailable,
                        .what = fmt::format("{} of {} ranks have connected to rank 0: {}", out.size() + 1,
                                            ranks, socket.error().what),
                        .where = tcp::own_host(),
                        .hint = "look whether the nodes reach each other over IPv4"});
    Hello hello;
    const bool known = tcp::ready_within(socket->get(), kReach) && read_one(socket->get(), hello) &&
                       std::string(hello.token.data(), kTokenLength) == token;
    if (!known || !write_one(socket->get(), hello_of(0, token))) continue;
    out.push_back({std::move(*socket), hello.rank, text_of(hello.host)});
  }
  std::sort(out.begin(), out.end(), [](const Link& a, const Link& b) { return a.rank < b.rank; });
  return out;
}

Result<PeerLinks::Link> PeerLinks::reach_rank_0(int rank, const std::string& announced) {
  std::vector<std::string> words = split(announced, ' ');
  int port = 0;
  if (words.size() >= 3) std::from_chars(words[1].data(), words[1].data() + words[1].size(), port);
  if (port == 0)
    return fail(ErrorKind::unavailable, "rank 0 could not open a port for the other ranks: its log says why");
  if (words[2] == tcp::own_host()) words.insert(words.begin() + 3, "127.0.0.1");
  std::vector<std::string> tried;
  for (std::size_t i = 3; i < words.size(); ++i) {
    auto socket = tcp::connect_within(words[i], port, kReach);
    Hello answer;
    if (socket && write_one(socket->get(), hello_of(rank, words[0])) && read_one(socket->get(), answer))
      return Link{std::move(*socket), 0, text_of(answer.host)};
    tried.push_back(socket ? words[i] + " answers, but is not rank 0" : socket.error().what);
  }
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("rank {} on {} cannot reach rank 0 on {}", rank, tcp::own_host(), words[2]),
            .hint = "look whether the nodes reach each other over IPv4",
            .also = tried});
}

PeerLinks::~PeerLinks() {
  for (const Link& link : links_)
    if (link.socket && !link.left) write_one(link.socket.get(), Notice{});
}

PeerLinks::Link* PeerLinks::link_of(int peer) {
  const auto found =
      std::find_if(links_.begin(), links_.end(), [&](const Link& link) { return link.rank == peer; });
  return found == links_.end() ? nullptr : &*found;
}

Result<void> PeerLinks::send(int peer, std::span<const std::byte> message) {
  Link* const link = link_of(peer);
  if (link == nullptr) return fail(ErrorKind::internal, "rank {} has no link with rank {}", rank_, peer);
  if (tcp::write_all(link->socket.get(), message)) return {};
  return fail(ErrorKind::lost, "{} is gone", link->name());
}

Result<void> PeerLinks::receive(int peer, std::span<std::byte> message) {
  Link* const link = link_of(peer);
  if (link == nullptr) return fail(ErrorKind::internal, "rank {} has no link with rank {}", rank_, peer);
  if (tcp::read_all(link->socket.get(), message)) return {};
  return fail(ErrorKind::lost, "{} is gone", link->name());
}

void PeerLinks::shut() {
  for (const Link& link : links_) ::shutdown(link.socket.get(), SHUT_RDWR);
}

void PeerLinks::pass_on(const std::string& name) {
  Notice notice{.kind = Notice::gone, .name = {}};
  put(notice.name, name);
  for (Link& link : links_)
    if (!link.left && link.name() != name) write_one(link.socket.get(), notice);
}

// A notice is small enough to come whole; until it is there, nothing is taken.
std::optional<std::string> PeerLinks::look(Link& link) {
  Notice notice;
  const ssize_t got = ::recv(link.socket.get(), &notice, sizeof notice, MSG_DONTWAIT | MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  if (got <= 0) return link.name();
  if (got < static_cast<ssize_t>(sizeof notice) || !read_one(link.socket.get(), notice)) return std::nullopt;
  if (notice.kind == Notice::gone) return text_of(notice.name);
  link.left = true;
  return std::nullopt;
}

std::optional<std::string> PeerLinks::gone() {
  for (Link& link : links_) {
    if (gone_ || link.left) continue;
    gone_ = look(link);
    if (gone_ && rank_ == 0) pass_on(*gone_);
  }
  return gone_;
}

}  // namespace dlrun::runtime
