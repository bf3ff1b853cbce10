// NcclRanks: a communicator of NCCL over some ranks of a world, and what notices that one of them is lost.
// The ranks find each other through the world's own Communicator, whatever that is: an MPI, or the launcher's
// PMI service. Beside NCCL, which does not notice the death of a peer on the same node, a link with every
// rank of the world watches. It does not choose a device: the caller's current one is used.
#pragma once

#include <chrono>
#include <optional>
#include <thread>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/nccl/library.hpp"
#include "runtime/comm/transport/peer_links.hpp"

namespace dlrun::runtime {

class NcclRanks {
 public:
  // Called by all ranks of `world`, each with the ranks of the communicator that it is of, ascending. Either
  // all have it or all get an Error, which names the rank that cannot.
  static Result<std::unique_ptr<NcclRanks>> connect(Communicator& world, std::span<const int> members,
                                                    const std::filesystem::path& library);
  NcclRanks(NcclLibrary library, NcclLibrary::Comm comm, PeerLinks links)
      : library_(std::move(library)), comm_(comm), links_(std::move(links)) {}
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;
  ~NcclRanks();

  const NcclLibrary& nccl() const { return library_; }
  NcclLibrary::Comm comm() const { return comm_; }
  std::string name() const { return "NCCL " + library_.version(); }

  // The Error of what was lost; looks at nothing.
  Result<void> state() const;
  // As DeviceAllreduce::check().
  Result<void> check();
  // Ends what waits on the device, for a reason seen elsewhere. Where a peer turns out to be gone within a
  // second, that is the reason.
  Result<void> give_up_for(Error found);

 private:
  std::optional<Error> gone_peer();
  Result<void> give_up(Error error);

  NcclLibrary library_;
  NcclLibrary::Comm comm_;
  PeerLinks links_;
  std::chrono::steady_clock::time_point looked_;
  std::optional<Error> failure_;
  std::thread ending_;
};

}  // namespace dlrun::runtime
