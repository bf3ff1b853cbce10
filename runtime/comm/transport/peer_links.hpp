// PeerLinks: a TCP connection of every rank with rank 0, for what must not depend on an MPI or on NCCL: to
// notice at once that a peer is gone, by name. Both ends prove themselves first
// (rank_port.hpp). It carries no data (socket_transport.hpp does), and it restarts nobody.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/transport/rank_port.hpp"

namespace dlrun::runtime {

class PeerLinks {
 public:
  // Gives the text of rank 0 to all ranks.
  using Announce = std::function<Result<std::string>(std::string mine)>;
  static Result<PeerLinks> connect(int rank, int ranks, const Announce& announce);
  PeerLinks(PeerLinks&&) = default;
  PeerLinks& operator=(PeerLinks&&) = default;
  ~PeerLinks();  // tells the peers that this rank leaves in order

  /// "rank 2 on gpu07" where a peer went without having told, seen without waiting; rank 0 passes it on.
  std::optional<std::string> gone();
  /// Without a word: the peers take this rank for gone.
  void close() { links_.clear(); }

 private:
  struct Link {
    UniqueFd socket;
    int rank = 0;
    std::string host;
    bool left = false;  // in order
    std::string name() const;
  };
  PeerLinks(int rank, std::vector<Link> links) : rank_(rank), links_(std::move(links)) {}
  static Link link_to(ConnectedRank peer);
  std::optional<std::string> probe(Link& link);
  void pass_on(const std::string& name);

  int rank_;
  std::vector<Link> links_;
  std::optional<std::string> gone_;
};

}  // namespace dlrun::runtime
