// See connect_to_rank.hpp.
#include "runtime/comm/transport/connect_to_rank.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include <poll.h>

#include "runtime/comm/transport/fixed_read.hpp"
#include "runtime/comm/transport/rank_proof.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kNextAddressAfter{300};
constexpr milliseconds kAddressLimit{5'000};  // in which an address must answer
constexpr milliseconds kBetweenRounds{200};

struct Announced {
  Token token;
  int port;
  std::string host;
  std::vector<std::string> addresses;
};

Result<Announced> parse_announcement(int peer, const std::string& text) {
  std::vector<std::string> words = split(text, ' ');
  const auto port = words.size() >= 3 ? parse_integer(words[1], 1, 65535) : fail(Error{});
  if (!port)
    return fail(ErrorKind::unavailable, "rank {} could not open a port for the other ranks: its log says why",
                peer);
  Announced out{.token = TRY(Token::parse(words[0])),
                .port = static_cast<int>(*port),
                .host = words[2],
                .addresses = {words.begin() + 3, words.end()}};
  if (out.host == tcp::own_host()) out.addresses.insert(out.addresses.begin(), "127.0.0.1");
  return out;
}

// One address on its way to a proof.
class Attempt {
 public:
  Attempt(const std::string& address, const Announced& peer, int own)
      : address_(address), proof_(peer.token, own, tcp::own_host()), end_(steady_now() + kAddressLimit) {
    auto socket = tcp::start_connect(address, peer.port);
    if (socket)
      socket_ = std::move(*socket);
    else
      failure_ = socket.error().what;
  }

  pollfd waits_for() const {
    return {socket_.get(), static_cast<short>(step_ == Step::connecting ? POLLOUT : POLLIN), 0};
  }
  Deadline end() const { return end_; }
  const std::optional<std::string>& failure() const { return failure_; }
  std::string text() const { return fmt::format("{}: {}", address_, failure_.value_or("")); }
  // It was a rank's port, or could have been, but closed the connection: the next round may succeed.
  bool was_dropped() const { return dropped_; }

  // True once the other side has proven itself.
  bool advance(milliseconds proof_limit) {
    if (failure_) return false;
    if (steady_now() >= end_) {
      failure_ = step_ == Step::connecting ? "no answer" : "it did not prove that it is the rank";
      return false;
    }
    if (step_ == Step::connecting && !finish_connect(proof_limit)) return false;
    if (step_ == Step::greeting && !read(greeting_)) return false;
    if (step_ == Step::greeting && !send_answer()) return false;
    if (!read(receipt_)) return false;
    if (proof_.is_sound(receipt_.value())) return true;
    failure_ = "it cannot prove that it is the rank";
    return false;
  }
  ConnectedRank take(int peer) { return {std::move(socket_), peer, text_of(receipt_.value().host)}; }

 private:
  enum class Step { connecting, greeting, receipt };

  bool finish_connect(milliseconds proof_limit) {
    pollfd one = waits_for();
    if (::poll(&one, 1, 0) != 1) return false;
    if (const auto outcome = tcp::outcome_of(socket_.get()); !outcome) {
      failure_ = outcome.error().what;
      return false;
    }
    end_ = steady_now() + proof_limit;
    step_ = Step::greeting;
    return true;
  }
  bool send_answer() {
    const auto answer = proof_.answer(greeting_.value());
    if (!answer) failure_ = "it is not a rank of dlrun";
    if (answer && !send_whole(socket_.get(), *answer)) dropped_ = true, failure_ = "it closed the connection";
    step_ = Step::receipt;
    return !failure_;
  }
  template <class T>
  bool read(FixedRead<T>& message) {
    const auto state = message.read(socket_.get());
    if (state == ReadState::ended) dropped_ = true, failure_ = "it closed the connection";
    return state == ReadState::whole;
  }

  std::string address_;
  CallerProof proof_;
  Deadline end_;
  UniqueFd socket_;
  Step step_ = Step::connecting;
  FixedRead<RankGreeting> greeting_;
  FixedRead<RankReceipt> receipt_;
  std::optional<std::string> failure_;
  bool dropped_ = false;
};

// All addresses once.
class Round {
 public:
  Round(const Announced& peer, int own, milliseconds proof_limit)
      : peer_(peer), own_(own), proof_limit_(proof_limit) {}

  // Unset where none of them is the rank.
  std::optional<ConnectedRank> run(int rank) {
    Deadline next_start = steady_now();
    for (;;) {
      const bool waiting =
          std::any_of(tries_.begin(), tries_.end(), [](const Attempt& one) { return !one.failure(); });
      if (tries_.size() < peer_.addresses.size() && (!waiting || steady_now() >= next_start)) {
        tries_.emplace_back(peer_.addresses[tries_.size()], peer_, own_);
        next_start = steady_now() + kNextAddressAfter;
      } else if (!waiting) {
        return std::nullopt;
      }
      for (Attempt& one : tries_)
        if (one.advance(proof_limit_)) return one.take(rank);
      wait(tries_.size() < peer_.addresses.size() ? next_start : Deadline::max());
    }
  }
  bool was_dropped() const {
    return std::any_of(tries_.begin(), tries_.end(), [](const Attempt& one) { return one.was_dropped(); });
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const Attempt& one : tries_) out.push_back(one.text());
    return out;
  }

 private:
  void wait(Deadline next) const {
    std::vector<pollfd> fds;
    for (const Attempt& one : tries_) {
      if (one.failure()) continue;
      fds.push_back(one.waits_for());
      next = std::min(next, one.end());
    }
    if (!fds.empty()) ::poll(fds.data(), fds.size(), milliseconds_until(next));
  }

  const Announced& peer_;
  int own_;
  milliseconds proof_limit_;
  std::vector<Attempt> tries_;
};

}  // namespace

Result<ConnectedRank> connect_to_rank(int own, int peer, const std::string& announcement,
                                      const StartLimits& limits) {
  const Announced announced = TRY(parse_announcement(peer, announcement));
  for (const Deadline end = steady_now() + limits.all;; std::this_thread::sleep_for(kBetweenRounds)) {
    Round round(announced, own, limits.proof);
    if (auto found = round.run(peer)) return std::move(*found);
    if (round.was_dropped() && steady_now() < end) continue;
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = fmt::format("rank {} on {} cannot reach rank {} on {} (port {})", own,
                                          tcp::own_host(), peer, announced.host, announced.port),
                      .hint = "check that the nodes reach each other over TCP",
                      .also = round.texts()});
  }
}

}  // namespace dlrun::runtime
