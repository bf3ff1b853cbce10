// See mpi_communicator.hpp.
#include "runtime/comm/mpi_communicator.hpp"

#include <cstdlib>
#include <optional>

#include "runtime/comm/choice.hpp"
#include "runtime/comm/group_link.hpp"
#include "runtime/comm/job_thread.hpp"
#include "runtime/comm/mpi_transport.hpp"
#include "runtime/comm/pmi_farewell.hpp"
#include "runtime/comm/shared_memory.hpp"

namespace dlrun::runtime {

namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MpiLibrary mpi, Allreduce allreduce, const Environment& environment)
      : mpi_(std::move(mpi)),
        allreduce_(allreduce == Allreduce::hierarchical ? Allreduce::automatic : allreduce),
        pmi_fd_(environment.find("PMI_FD")) {}

  Result<void> start() {
    return thread_.run([this]() -> Result<void> {
      TRY(mpi_.check(mpi_->start(), "MPI_Init_thread"));
      int node_ranks = 0;
      TRY(mpi_.check(mpi_->ranks_on_this_node(&node_ranks), "MPI_Comm_split_type"));
      link_.emplace(mpi_, thread_);
      one_node_ = node_ranks == size();
      return {};
    });
  }

  // Where all ranks are on one node. A library that cannot share memory is no error: messages remain.
  Result<void> share_memory() {
    if (!one_node_ || size() == 1 || allreduce_ != Allreduce::automatic) return {};
    return thread_.run([this]() -> Result<void> {
      void* memory = nullptr;
      if (mpi_->share_memory(SharedMemorySum::bytes(size()), &memory) == 0)
        shared_.emplace(memory, rank(), size());
      return {};
    });
  }

  int rank() const override { return link_->rank(); }
  int size() const override { return link_->size(); }
  std::string description() const override {
    return mpi_.version() + (shared_ ? ", sums through shared memory" : "");
  }

  Result<void> allreduce_start(std::span<float> data) override {
    return rounded_allreduce_start(data, Wire::f32);
  }

  // Through shared memory the processors move the numbers themselves, so nothing is gained by starting early,
  // and one meeting of the ranks a step costs less than one a bucket: such sums are only noted here.
  Result<void> rounded_allreduce_start(std::span<float> data, Wire wire) override {
    if (size() == 1) return {};
    if (wire != Wire::f32 && allreduce_ != Allreduce::automatic)
      return fail(Error{.kind = ErrorKind::usage,
                        .what = fmt::format("DLRUN_ALLREDUCE names a sum that sends f32, and the job asks "
                                            "for {}",
                                            name_of(wire)),
                        .hint = "leave DLRUN_ALLREDUCE out"});
    if (shared_)
      noted_.push_back({data, wire});
    else
      thread_.post([this, data, wire] { return sum(data, wire); });
    return {};
  }

  Result<void> served_sum_start(std::span<const ServedPiece> pieces) override {
    if (size() == 1) return {};
    thread_.post([this, all = std::vector<ServedPiece>(pieces.begin(), pieces.end())] {
      return served_sum(*link_, all, scratch_);
    });
    return {};
  }

  // By messages also where all ranks share memory: groups are for what lies between nodes.
  Result<void> group_sum(std::span<const int> group, std::span<float> data, Wire wire) override {
    return thread_.run([=, this] {
      GroupLink link(*link_, group);
      return sum_over(link, data, wire, scratch_);
    });
  }

  Result<void> wait_all() override {
    TRY(thread_.wait());
    for (const Noted& sum : noted_) shared_->sum(sum.data, sum.wire);
    noted_.clear();
    return {};
  }

  Result<void> allreduce(std::span<double> data) override {
    return on_thread([=, this] { return mpi_->sum_doubles(data.data(), data.size()); }, "MPI_Allreduce");
  }
  Result<void> broadcast(std::span<std::byte> data, int root) override {
    return on_thread([=, this] { return mpi_->broadcast(data.data(), data.size(), root); }, "MPI_Bcast");
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (all.size() != mine.size() * static_cast<std::size_t>(size()))
      return fail(ErrorKind::internal, "allgather of {} bytes from {} ranks into {} bytes", mine.size(),
                  size(), all.size());
    return on_thread([=, this] { return mpi_->allgather(mine.data(), mine.size(), all.data()); },
                     "MPI_Allgather");
  }
  // By flags where there are some: through the thread, ranks would leave it apart by what its wake-ups take.
  Result<void> barrier() override {
    if (!shared_) return thread_.run([this] { return meet(*link_); });
    TRY(thread_.wait());
    shared_->meet();
    return {};
  }

  void give_up() override { thread_.give_up(); }
  // From the calling thread: the other one may stand in a call that never ends, which is why we abort.
  [[noreturn]] void abort(int code) override {
    mpi_->abort(code);
    std::_Exit(code);  // MPI_Abort may return where it cannot reach the launcher
  }

  // MPICH over UCX and TCP waits for ever in about half of its MPI_Finalize calls (4.0.2 with UCX 1.13), so
  // across nodes it is left after a barrier, and the launcher is told in its own protocol that this was in
  // order.
  Result<void> finish() override {
    if (mpi_.flavour() == MpiFlavour::mpich && !one_node_ && pmi_fd_) {
      TRY(on_thread([this] { return mpi_->leave(); }, "MPI_Barrier"));
      return pmi_farewell(*pmi_fd_);
    }
    return on_thread([this] { return mpi_->finish(); }, "MPI_Finalize");
  }

 private:
  struct Noted {
    std::span<float> data;
    Wire wire;
  };

  template <class Call>
  Result<void> on_thread(Call call, std::string_view name) {
    return thread_.run([this, call, name] { return mpi_.check(call(), name); });
  }

  Result<void> sum(std::span<float> data, Wire wire) {
    switch (allreduce_) {
      case Allreduce::mpi:
        return mpi_.check(mpi_->sum_floats(data.data(), data.size()), "MPI_Allreduce");
      case Allreduce::ring:
        return ring_sum(*link_, data, scratch_);
      case Allreduce::halving:
        return halving_sum(*link_, data, scratch_);
      case Allreduce::automatic:
      case Allreduce::hierarchical:
        break;
    }
    return sum_over(*link_, data, wire, scratch_);
  }

  MpiLibrary mpi_;
  Allreduce allreduce_;
  std::optional<std::string> pmi_fd_;
  bool one_node_ = false;
  std::optional<SharedMemorySum> shared_;
  std::vector<Noted> noted_;
  std::optional<MpiTransport> link_;
  Scratch scratch_;   // the thread's
  JobThread thread_;  // last: it uses all of the above
};

// Before anything is sent: a world of another size than the launcher's means that the ranks did not find each
// other (each a world of one) or found others.
Result<void> check_world(const Communicator& world, const Environment& environment,
                         std::string_view flavour) {
  const std::optional<std::string> promised = environment.find("DLRUN_SIZE");
  if (!promised || *promised == std::to_string(world.size())) return {};
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} came up as a world of {} where DLRUN_SIZE promises {}", flavour,
                                        world.size(), *promised),
                    .where = fmt::format("rank {}", environment.get("DLRUN_RANK", "unknown")),
                    .hint =
                        "the MPI does not speak the launcher's protocol: choose it with DLRUN_COMM=openmpi "
                        "(PMIx) or DLRUN_COMM=mpich (PMI-1)"});
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_mpi_communicator(MpiFlavour flavour,
                                                            const Environment& environment) {
  const Allreduce allreduce = TRY(choose_allreduce(environment));
  MpiLibrary mpi = TRY(MpiLibrary::open(flavour));
  const std::string name = mpi->flavour;
  auto world = std::make_unique<MpiCommunicator>(std::move(mpi), allreduce, environment);
  TRY(world->start());
  if (auto right = check_world(*world, environment, name); !right) {
    if (world->size() == 1) (void)world->finish();  // alone, so it cannot wait for others; removes its files
    return fail(right.error());
  }
  TRY(world->share_memory());
  return world;
}

}  // namespace dlrun::runtime
