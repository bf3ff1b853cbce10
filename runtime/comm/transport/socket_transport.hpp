// SocketTransport: messages over one TCP connection with every other rank. The kernel moves them: what has
// been started goes on while somebody waits for any of them, and waiting costs no processor. Every message
// carries its length, so that ranks that disagree about what they exchange get an Error and not each other's
// bytes.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/comm/job_thread.hpp"
#include "runtime/comm/transport/rank_port.hpp"
#include "runtime/comm/transport/transport.hpp"

namespace dlrun::runtime {

class SocketTransport final : public Transport {
 public:
  /// `peers`: all ranks but this one, in their order. Used on `thread` only, whose jobs may be given up.
  SocketTransport(int rank, std::vector<ConnectedRank> peers, const JobThread& thread);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()) + 1; }
  Result<Ticket> send_start(std::span<const std::byte> data, int to) override;
  Result<Ticket> receive_start(std::span<std::byte> data, int from) override;
  Result<void> wait(Ticket ticket) override;
  Result<std::size_t> wait_any(std::span<const Ticket> tickets) override;
  /// Why this rank is not there any more, seen without waiting; unset while it is. On any thread.
  std::optional<Error> lost(int rank) const;

 private:
  // A message under way: its length, then its bytes, of which `done` have gone or come.
  struct Message {
    std::size_t ticket = 0;
    std::span<std::byte> bytes;
    std::uint64_t length = 0;
    std::size_t done = 0;
  };
  struct Peer {
    ConnectedRank link;
    std::deque<Message> leaving, arriving;
  };
  enum class Moved { no, yes };

  std::size_t place(int rank) const { return static_cast<std::size_t>(rank < rank_ ? rank : rank - 1); }
  Peer& peer(int rank) { return peers_[place(rank)]; }
  Ticket add(std::deque<Message>& queue, std::span<std::byte> bytes);
  Result<Moved> move_all();
  Result<void> send_some(Peer& to, Moved& moved);
  Result<void> receive_some(Peer& from, Moved& moved);
  void finish_first(std::deque<Message>& queue);
  void rest() const;

  int rank_;
  std::vector<Peer> peers_;
  const JobThread& thread_;
  std::size_t next_ticket_ = 0;
  std::unordered_map<std::size_t, bool> under_way_;  // by ticket: whether it is done
};

}  // namespace dlrun::runtime
