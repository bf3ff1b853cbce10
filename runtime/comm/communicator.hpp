// Communicator: the collectives that training needs, over whatever connects the ranks: an MPI through a
// plug-in chosen at start, dlrun's own links (TCP and shared memory), which need no MPI, or nothing for one
// rank. split() makes process groups: each is a Communicator too. It never changes the world: a dead peer
// ends the job (the launcher names it).
//
// All ranks of a communicator make the same calls in the same order, from one thread at a time; ranks that
// share several groups make the calls on all of these in one order. Which order floats are added in depends
// on the number of ranks, the lengths and the algorithm alone, so the same calls give the same bits in every
// run and on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/trace.hpp"
#include "runtime/comm/allreduce/algorithms.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

class ElasticWorld;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "Open MPI 4.1.4", "one rank"
  virtual std::string description() const = 0;
  /// For people, where the ranks are connected in a way that nobody asked for; else empty.
  virtual std::string note() const { return {}; }

  /// Sums `data` over the ranks, in place; may return before it is done, and `data` must not be touched until
  /// wait_all(). In a 16-bit `dtype` numbers may be rounded twice in transit, once as a term and once as a
  /// sum; terms are added in f32. Which ranks' terms are added first is the algorithm's: see
  /// allreduce/algorithms.hpp.
  virtual Result<void> allreduce_start(std::span<float> data, CommDtype dtype = CommDtype::f32) = 0;
  /// Sums each piece on its parameter server, in the order of the ranks, and sends the sum to all.
  virtual Result<void> parameter_server_allreduce_start(std::span<const ServedPiece> pieces) = 0;
  /// Adds what the shards of all ranks gave in the order of one tree over the shards: the bits do not depend
  /// on how many ranks there are. As allreduce_start(); always in f32.
  virtual Result<void> tree_allreduce_start(const TreeTerms& data) = 0;
  /// Waits for all that was started, on this communicator and on every other group of its world.
  virtual Result<void> wait_all() = 0;
  Result<void> allreduce(std::span<float> data, CommDtype dtype = CommDtype::f32) {
    TRY(allreduce_start(data, dtype));
    return wait_all();
  }
  /// Sums doubles: on own links in the order of the ranks, under an MPI in the MPI's order.
  virtual Result<void> allreduce(std::span<double> data) = 0;
  /// `data` has a block of mine.size() floats for each rank, in rank order; `mine` becomes the sum of this
  /// rank's block, added in f32 in the order of the ranks. The terms of other ranks travel as `dtype`. `mine`
  /// may be this rank's block of `data`.
  virtual Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine,
                                      CommDtype dtype = CommDtype::f32) = 0;
  /// The same of parts of any lengths: rank r's part of `data` begins at borders[r] and ends at borders[r +
  /// 1]. Each rank's own part becomes the sum, in place, in f32; what the other parts are then is not said.
  /// As allreduce_start().
  virtual Result<void> reduce_scatter_start(std::span<float> data, std::span<const std::size_t> borders,
                                            CommDtype dtype);
  /// Every rank's own part of `data` comes to all. As allreduce_start().
  virtual Result<void> allgather_start(std::span<float> data, std::span<const std::size_t> borders);
  virtual Result<void> broadcast(std::span<std::byte> data, int root) = 0;
  /// `mine` of every rank, in rank order, into `all` (size() * mine.size() bytes).
  virtual Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// No rank returns before all have come.
  virtual Result<void> barrier() = 0;
  /// A message to one rank, which receives it with the same length. As in MPI, two ranks that first send to
  /// each other may wait for ever.
  virtual Result<void> send(std::span<const std::byte> data, int to) = 0;
  virtual Result<void> receive(std::span<std::byte> data, int from) = 0;
  /// Messages in an order of the caller's own: `exchange` runs where messages are moved, behind what was
  /// started before, with the links of this communicator. As allreduce_start(). ErrorKind::unavailable where
  /// ranks are connected otherwise.
  using Exchange = std::function<Result<void>(Transport& link)>;
  virtual Result<void> exchange_start(Exchange exchange);

  /// The process group of this rank: all ranks that give the same color, numbered by key and, where keys are
  /// equal, by their rank here (MPI_Comm_split). All ranks call it. The world outlives its groups; a group
  /// may be split again, and its parent may go.
  virtual Result<std::unique_ptr<Communicator>> split(int color, int key) = 0;

  /// Where each sum over the ranks is told.
  virtual void set_trace(Trace& /*trace*/) {}

  /// On any thread: what waits for a peer, now or later, on any group of the world, ends with an Error. Only
  /// abort() is called after it.
  virtual void give_up() = 0;
  /// Ends the whole job with this code; does not return.
  [[noreturn]] virtual void abort(int code) = 0;
  /// What it can besides where its ranks may be lost; null where a lost rank is the end.
  virtual ElasticWorld* elastic() { return nullptr; }
  /// The orderly end: after it, no call is made. All ranks call it. A group needs none.
  virtual Result<void> finish() = 0;
};

/// Chooses the backend from the environment: DLRUN_COMM=none|openmpi|mpich|pmi|elastic where it is set, else
/// none for one rank, Open MPI under PMIx, and under PMI-1 MPICH where it can be loaded, else own links.
/// `of_job`: the allreduce that the job file names. An Error where the world that comes up is not the world
/// that DLRUN_SIZE promised.
Result<std::unique_ptr<Communicator>> make_communicator(const Environment& environment,
                                                        const AllreduceChoice& of_job = {});

}  // namespace dlrun::runtime
