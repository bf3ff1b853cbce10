// See rank_port.hpp.
#include "runtime/comm/transport/rank_port.hpp"

#include <algorithm>
#include <deque>

#include <poll.h>
#include <sys/socket.h>

#include "runtime/comm/transport/fixed_read.hpp"
#include "runtime/comm/transport/rank_proof.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kMaxCallers = 256;  // at once; the one that has said nothing for longest is dropped
constexpr std::size_t kMaxAnnouncement = 1000;  // a value of PMI-1 has 1024

// Somebody who has connected and not proven anything yet.
class Caller {
 public:
  enum class State { reading, proven, refused };

  Caller(UniqueFd socket, const Token& token, Deadline end)
      : socket_(std::move(socket)), proof_(token), end_(end) {
    greeted_ = send_whole(socket_.get(), proof_.greeting());
  }
  int fd() const { return socket_.get(); }
  Deadline end() const { return end_; }

  State advance(const std::set<int>& expected, const std::string& own_host) {
    if (!greeted_ || steady_now() >= end_) return State::refused;
    const auto state = answer_.read(socket_.get());
    if (state == ReadState::under_way) return State::reading;
    if (state == ReadState::ended) return State::refused;
    const auto receipt = proof_.check(answer_.value(), own_host);
    const bool known = receipt && expected.contains(answer_.value().rank);
    return known && send_whole(socket_.get(), *receipt) ? State::proven : State::refused;
  }
  ConnectedRank take() { return {std::move(socket_), answer_.value().rank, text_of(answer_.value().host)}; }

 private:
  UniqueFd socket_;
  PortProof proof_;
  Deadline end_;
  FixedRead<RankAnswer> answer_;
  bool greeted_ = false;
};

// The callers of one port while its ranks come.
class Reception {
 public:
  Reception(int listener, const Token& token, std::set<int> expected, const StartLimits& limits)
      : listener_(listener),
        token_(token),
        expected_(std::move(expected)),
        limits_(limits),
        end_(steady_now() + limits.all) {}

  Result<std::vector<ConnectedRank>> run() {
    while (!expected_.empty()) {
      if (steady_now() >= end_) return missing();
      wait();
      TRY(take_new());
      advance_all();
    }
    std::sort(here_.begin(), here_.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return std::move(here_);
  }

 private:
  void wait() const {
    std::vector<pollfd> fds{{listener_, POLLIN, 0}};
    Deadline next = end_;
    for (const Caller& caller : callers_) {
      fds.push_back({caller.fd(), POLLIN, 0});
      next = std::min(next, caller.end());
    }
    ::poll(fds.data(), fds.size(), milliseconds_until(next));
  }

  // An Error where no connection can be taken although none of ours is left to be dropped. So many at once
  // that those who are here are served again, however fast others come.
  Result<void> take_new() {
    for (std::size_t taken = 0; taken < kMaxCallers; ++taken) {
      auto socket = tcp::accept_one(listener_);
      if (!socket && callers_.empty()) return fail(std::move(socket).error());
      if (!socket) return callers_.pop_front(), Result<void>{};
      if (!*socket) return {};
      if (callers_.size() == kMaxCallers) callers_.pop_front();
      callers_.emplace_back(std::move(**socket), token_, steady_now() + limits_.proof);
    }
    return {};
  }

  void advance_all() {
    std::erase_if(callers_, [&](Caller& caller) {
      const auto state = caller.advance(expected_, own_host_);
      if (state == Caller::State::proven) {
        here_.push_back(caller.take());
        expected_.erase(here_.back().rank);
      }
      return state != Caller::State::reading;
    });
  }

  tl::unexpected<Error> missing() const {
    std::vector<std::string> names;
    for (const int rank : expected_)
      if (names.size() < 8) names.push_back(std::to_string(rank));
    return fail(
        Error{.kind = ErrorKind::unavailable,
              .what = fmt::format("{} of {} ranks have not connected within {} s: rank {}{}",
                                  expected_.size(), expected_.size() + here_.size(),
                                  std::chrono::duration_cast<std::chrono::seconds>(limits_.all).count(),
                                  join(names, ", "), expected_.size() > names.size() ? ", ..." : ""),
              .where = own_host_,
              .hint = "check that the nodes reach each other over TCP"});
  }

  int listener_;
  const Token& token_;
  std::set<int> expected_;
  StartLimits limits_;
  Deadline end_;
  std::string own_host_ = tcp::own_host();
  std::deque<Caller> callers_;
  std::vector<ConnectedRank> here_;
};

}  // namespace

Result<RankPort> RankPort::open() {
  return RankPort(TRY(tcp::listen_anywhere()), Token::random());
}

std::string RankPort::announcement() const {
  std::string text = fmt::format("{} {} {}", token_.text(), listener_.port, tcp::own_host());
  for (const std::string& address : tcp::own_addresses())
    if (text.size() + 1 + address.size() <= kMaxAnnouncement) text += " " + address;
  return text;
}

Result<std::vector<ConnectedRank>> RankPort::accept(std::set<int> expected, const StartLimits& limits) const {
  return Reception(listener_.socket.get(), token_, std::move(expected), limits).run();
}

void RankPort::shut() const {
  ::shutdown(listener_.socket.get(), SHUT_RDWR);
}

}  // namespace dlrun::runtime
