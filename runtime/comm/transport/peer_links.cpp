#include "runtime/comm/transport/peer_links.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

#include "runtime/comm/transport/connect_to_rank.hpp"

namespace dlrun::runtime {

namespace {

// What a link carries where it only watches: that a rank leaves in order, or the name of a rank that is gone.
struct Notice {
  enum Kind : std::int32_t { leaving = 1, gone = 2 };
  std::int32_t kind = leaving;
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

}  // namespace

std::string PeerLinks::Link::name() const {
  return fmt::format("rank {} on {}", rank, host);
}

PeerLinks::Link PeerLinks::link_to(ConnectedRank peer) {
  tcp::set_blocking(peer.socket.get());
  return {std::move(peer.socket), peer.rank, std::move(peer.host)};
}

Result<PeerLinks> PeerLinks::connect(int rank, int ranks, const Announce& announce) {
  std::vector<Link> links;
  if (rank != 0) {
    links.push_back(link_to(TRY(connect_to_rank(rank, 0, TRY(announce({}))))));
    return PeerLinks(rank, std::move(links));
  }
  auto port = RankPort::open();
  TRY(announce(port ? port->announcement() : std::string()));  // the others wait for it
  if (!port) return tl::unexpected(std::move(port).error());
  std::set<int> others;
  for (int other = 1; other < ranks; ++other) others.insert(other);
  std::vector<ConnectedRank> peers = TRY(port->accept(std::move(others)));
  for (ConnectedRank& peer : peers) links.push_back(link_to(std::move(peer)));
  return PeerLinks(0, std::move(links));
}

PeerLinks::~PeerLinks() {
  for (const Link& link : links_)
    if (link.socket && !link.left) write_one(link.socket.get(), Notice{});
}

void PeerLinks::pass_on(const std::string& name) {
  Notice notice{.kind = Notice::gone, .name = {}};
  put(notice.name, name);
  for (Link& link : links_)
    if (!link.left && link.name() != name) write_one(link.socket.get(), notice);
}

// A notice is small enough to come whole; until it is there, nothing is taken.
std::optional<std::string> PeerLinks::probe(Link& link) {
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
    gone_ = probe(link);
    if (gone_ && rank_ == 0) pass_on(*gone_);
  }
  return gone_;
}

}  // namespace dlrun::runtime
