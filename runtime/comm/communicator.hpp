// Communicator: the collectives that training needs, over whatever connects the ranks. Backends: none (one
// rank), MPI through a plug-in chosen at start, and dlrun's own links, which need no MPI. All calls are made
// by all ranks in the same order. It never changes the world: a dead peer ends the job (the launcher names
// it).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/comm/allreduce/allreduce.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string description() const = 0;  // "Open MPI 4.1.4", "one rank"
  // For people, where the ranks are connected in a way that nobody asked for; else empty.
  virtual std::string note() const { return {}; }

  // Sums `data` over the ranks, in place. start: may return before it is done, `data` must lie still until
  // wait_all().
  virtual Result<void> allreduce_start(std::span<float> data) = 0;
  // The same, of numbers that may be rounded to `wire` on their way, once as a term and once as a sum; the
  // terms are added in f32. An Error where the backend has no such form.
  virtual Result<void> rounded_allreduce_start(std::span<float> data, Wire wire);
  // Sums each piece on its server, in the order of the ranks, and brings the sum back to all. An Error where
  // the backend has no servers.
  virtual Result<void> served_sum_start(std::span<const ServedPiece> pieces);
  virtual Result<void> wait_all() = 0;
  // Sums `data` over the ranks of `group`, in place, on that wire, and waits for it. All ranks call it at
  // once, each with the group that it is of: ascending, all groups of one size. On any thread, while no other
  // call is under way. An Error where the backend sums over all ranks only.
  virtual Result<void> group_sum(std::span<const int> group, std::span<float> data, Wire wire);
  Result<void> allreduce(std::span<float> data) {
    TRY(allreduce_start(data));
    return wait_all();
  }
  virtual Result<void> allreduce(std::span<double> data) = 0;
  virtual Result<void> broadcast(std::span<std::byte> data, int root) = 0;
  // `mine` of every rank, in rank order, into `all` (size() * mine.size() bytes).
  virtual Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual Result<void> barrier() = 0;
  // On any thread: what waits for a peer, now or later, ends with an Error. Only abort() is called after it.
  virtual void give_up() = 0;
  // Ends the whole job with this code; does not return.
  [[noreturn]] virtual void abort(int code) = 0;
  // The orderly end: after it, no call is made. All ranks call it.
  virtual Result<void> finish() = 0;
};

// Chooses the backend from the environment: DLRUN_COMM=none|openmpi|mpich|pmi where it is set, else none for
// one rank, Open MPI under PMIx, and under PMI-1 MPICH where it can be loaded, else own links. An Error where
// the world that comes up is not the world that DLRUN_SIZE promised.
Result<std::unique_ptr<Communicator>> make_communicator(const Environment& environment);

}  // namespace dlrun::runtime
