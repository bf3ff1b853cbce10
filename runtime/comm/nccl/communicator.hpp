// NcclCommunicator: collectives among the GPUs of some ranks by NCCL, and what notices that one of these
// ranks is lost. The ranks find each other through a Communicator of the hosts, whatever that is: an MPI, or
// the launcher's PMI service; split() makes process groups as there. Beside NCCL, which does not notice the
// death of a peer on the same node, a link with every rank of the world watches; of an elastic world the
// launcher tells as well. It does not choose a device: the caller's current one is used.
//
// In an elastic world, but for a first one of two ranks, no call waits inside NCCL, where a rank that is lost
// meanwhile would hold it for ever: it is asked whether it is done, and given up where somebody is lost.
//
// All but split() is work on a stream: it returns before it is done and may be captured in a graph. In which
// order NCCL adds is its own affair: the same library, ranks and lengths on the same machines give the same
// bits.
#pragma once

#include <chrono>
#include <optional>
#include <thread>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/nccl/library.hpp"
#include "runtime/comm/transport/peer_links.hpp"

namespace dlrun::runtime {

class NcclCommunicator {
 public:
  /// Called by all ranks of `world`, each with its group (which may be `world`): the ranks of the
  /// communicator. Either all ranks of the world have it or all get an Error, which names the rank that
  /// cannot: ErrorKind::lost where that one has lost a peer. Both outlive it.
  static Result<std::unique_ptr<NcclCommunicator>> connect(Communicator& world, Communicator& group,
                                                           const std::filesystem::path& library);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator();

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// "NCCL 2.28.3"
  std::string name() const { return "NCCL " + nccl().version(); }

  /// Sums in place.
  Result<void> allreduce(float* data, std::size_t count, void* stream) {
    return allreduce(data, count, DeviceNumber::f32, stream);
  }
  Result<void> allreduce(void* data, std::size_t count, DeviceNumber type, void* stream);
  /// The sum comes to `root`, in place; the others keep what they have.
  Result<void> reduce(float* data, std::size_t count, int root, void* stream);
  /// `count` numbers for each rank at `data`; the sum of this rank's goes to `mine`, which may be in their
  /// place.
  Result<void> reduce_scatter(const float* data, float* mine, std::size_t count, void* stream) {
    return reduce_scatter(data, mine, count, DeviceNumber::f32, stream);
  }
  Result<void> reduce_scatter(const void* data, void* mine, std::size_t count, DeviceNumber type,
                              void* stream);
  /// `bytes` of each rank, in rank order, into `all`; `mine` may be in its place there.
  Result<void> allgather(const void* mine, void* all, std::size_t bytes, void* stream);
  Result<void> broadcast(void* data, std::size_t bytes, int root, void* stream);
  Result<void> send(const void* data, std::size_t bytes, int to, void* stream);
  Result<void> receive(void* data, std::size_t bytes, int from, void* stream);
  /// As DeviceGroup has them, of parts of any lengths.
  Result<void> reduce_scatter(float* data, std::span<const std::size_t> borders, void* stream);
  Result<void> allgather(float* data, std::span<const std::size_t> borders, void* stream);
  /// What `calls` asks for is done at once: messages that wait for each other must be. Such calls nest.
  template <class Calls>
  Result<void> together(const Calls& calls) {
    TRY(state());
    ++groups_open_;
    Result<void> done = nccl().together(calls);
    --groups_open_;
    return complete(std::move(done));
  }

  /// The process group of the ranks that give the same color, in the order of their keys, as
  /// Communicator::split(). All ranks of this communicator call it.
  Result<std::unique_ptr<NcclCommunicator>> split(int color, int key);

  /// The Error of what was lost; asks nobody.
  Result<void> state() const;
  /// As DeviceAllreduce::check().
  Result<void> check();
  /// Ends what waits on the device, for a reason seen elsewhere. Where a peer turns out to be gone within a
  /// second, that is the reason.
  Result<void> give_up_for(Error found);

 private:
  // What all groups of a world share.
  struct Shared {
    NcclLibrary library;
    PeerLinks links;
  };
  enum class Waits { in_call, outside };  // for the others
  NcclCommunicator(std::shared_ptr<Shared> shared, NcclLibrary::Comm comm, Communicator& hosts, Waits waits)
      : shared_(std::move(shared)),
        comm_(comm),
        hosts_(&hosts),
        waits_(waits),
        rank_(hosts.rank()),
        size_(hosts.size()) {}
  static Result<std::unique_ptr<NcclCommunicator>> join(Communicator& parent, Communicator& group,
                                                        std::shared_ptr<Shared> shared);
  const NcclLibrary& nccl() const { return shared_->library; }
  static Waits waits_of(const NcclLibrary& library, Communicator& group);
  static std::optional<Error> lost_rank(Shared& shared, Communicator& hosts);
  // The same within a second, as NCCL may notice first, without a name.
  static std::optional<Error> named(Shared& shared, Communicator& hosts);
  static Result<NcclLibrary::Comm> connect_watched(Shared& shared, const NcclId& id, Communicator& group);
  Result<void> complete(Result<void> asked);
  static std::optional<Error> gone_peer(Shared& shared);
  Result<void> give_up(Error error);

  std::shared_ptr<Shared> shared_;
  NcclLibrary::Comm comm_;
  Communicator* hosts_;                  // the same ranks
  std::unique_ptr<Communicator> group_;  // hosts_, where split() has made it
  Waits waits_;
  int rank_, size_;
  int groups_open_ = 0;  // by together()
  std::chrono::steady_clock::time_point checked_;
  std::optional<Error> failure_;
  std::thread ending_;
};

/// An `Implementation` over a communicator of the group, with the name of its library: `Named` has both.
template <class Named, class Implementation>
Result<Named> connect_as(Communicator& world, Communicator& group, const std::filesystem::path& library) {
  auto nccl = TRY(NcclCommunicator::connect(world, group, library));
  std::string name = nccl->name();
  return Named{std::make_unique<Implementation>(std::move(nccl)), std::move(name)};
}

}  // namespace dlrun::runtime
