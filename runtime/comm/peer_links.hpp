// PeerLinks: a TCP connection of every rank with rank 0, for what must not depend on an MPI or on NCCL: to
// notice at once that a peer is gone, by name, and to carry small messages where there is no MPI. IPv4. It
// does not carry gradients at speed, and it restarts nobody.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

class PeerLinks {
 public:
  // Gives the text of rank 0 to all ranks.
  using Announce = std::function<Result<std::string>(std::string mine)>;
  static Result<PeerLinks> connect(int rank, int ranks, const Announce& announce);
  PeerLinks(PeerLinks&&) = default;
  PeerLinks& operator=(PeerLinks&&) = default;
  ~PeerLinks();  // tells the peers that this rank leaves in order

  // Rank 0 with any peer, the others with rank 0. An Error names a peer that is gone.
  Result<void> send(int peer, std::span<const std::byte> message);
  Result<void> receive(int peer, std::span<std::byte> message);

  // On any thread: messages under way and all later ones end, here and at the peers.
  void shut();

  // "rank 2 on gpu07" where a peer went without having told, seen without waiting; rank 0 passes it on. Not
  // to be mixed with messages on the same links.
  std::optional<std::string> gone();

 private:
  struct Link {
    UniqueFd socket;
    int rank = 0;
    std::string host;
    bool left = false;  // in order
    std::string name() const;
  };
  PeerLinks(int rank, std::vector<Link> links) : rank_(rank), links_(std::move(links)) {}
  static Result<std::vector<Link>> accept_all(int listener, int ranks, const std::string& token);
  static Result<Link> reach_rank_0(int rank, const std::string& announced);
  Link* link_of(int peer);
  std::optional<std::string> look(Link& link);
  void pass_on(const std::string& name);

  int rank_;
  std::vector<Link> links_;
  std::optional<std::string> gone_;
};

}  // namespace dlrun::runtime
