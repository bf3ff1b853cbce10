// See communicator.hpp.
#include "runtime/comm/mpi/communicator.hpp"

#include <cstdlib>
#include <optional>

#include "runtime/comm/allreduce/nodes.hpp"
#include "runtime/comm/collectives.hpp"
#include "runtime/comm/host_communicator.hpp"
#include "runtime/comm/mpi/transport.hpp"
#include "runtime/comm/pmi/client.hpp"

namespace dlrun::runtime {

namespace {

// What an MPI does as well itself it does here; groups exchange messages, as HostCommunicator has it.
class MpiCommunicator final : public HostCommunicator {
 public:
  MpiCommunicator(MpiLibrary mpi, const Environment& environment)
      : mpi_(std::move(mpi)), pmi_fd_(environment.find("PMI_FD")) {}

  Result<void> start(const AllreduceChoice& choice) {
    TRY(thread_.run([this]() -> Result<void> {
      TRY(mpi_.check(mpi_->start(), "MPI_Init_thread"));
      int node_ranks = 0;
      TRY(mpi_.check(mpi_->ranks_on_this_node(&node_ranks), "MPI_Comm_split_type"));
      link_.emplace(mpi_, thread_);
      one_node_ = node_ranks == link_->size();
      return {};
    }));
    collectives_.emplace(*link_, thread_, choice, [this](std::span<float> data) {
      return mpi_.check(mpi_->sum_floats(data.data(), data.size()), "MPI_Allreduce");
    });
    use(*collectives_, {*this, *link_, thread_}, whole_world(link_->size()));
    return {};
  }

  // Where all ranks are on one node. A library that cannot share memory is no error: messages remain.
  Result<void> share_memory(const Environment& environment) {
    if (!one_node_) return sum_by_nodes(TRY(gather_nodes(*this, environment)));
    if (!collectives_->may_share()) return {};
    return thread_.run([this]() -> Result<void> {
      void* memory = nullptr;
      if (mpi_->share_memory(SharedMemoryAllreduce::bytes(size()), &memory) == 0) collectives_->share(memory);
      return {};
    });
  }

  std::string description() const override {
    return mpi_.version() + (collectives_->shared() ? ", allreduce through shared memory" : nodes_text());
  }

  Result<void> allreduce(std::span<double> data) override {
    return on_thread([=, this] { return mpi_->sum_doubles(data.data(), data.size()); }, "MPI_Allreduce");
  }
  Result<void> broadcast(std::span<std::byte> data, int root) override {
    return on_thread([=, this] { return mpi_->broadcast(data.data(), data.size(), root); }, "MPI_Bcast");
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    TRY(check_allgather(mine.size(), all.size(), size()));
    return on_thread([=, this] { return mpi_->allgather(mine.data(), mine.size(), all.data()); },
                     "MPI_Allgather");
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
      return pmi_finalize(*pmi_fd_);
    }
    return on_thread([this] { return mpi_->finish(); }, "MPI_Finalize");
  }

 private:
  template <class Call>
  Result<void> on_thread(Call call, std::string_view name) {
    return thread_.run([this, call, name] { return mpi_.check(call(), name); });
  }

  MpiLibrary mpi_;
  std::optional<std::string> pmi_fd_;
  bool one_node_ = false;
  std::optional<MpiTransport> link_;
  std::optional<HostCollectives> collectives_;
  JobThread thread_;  // last: it uses all of the above
};

// The rank has this MPI already: what is left is to do without it.
std::string way_without(std::string_view flavour) {
  if (flavour == "Open MPI")
    return "this Open MPI does not use the launcher's PMIx: remove DLRUN_COMM, and run with --mpi pmi1, "
           "which "
           "connects the ranks by MPICH or without an MPI";
  return fmt::format(
      "this {} does not use the launcher's PMI-1: DLRUN_COMM=pmi connects the ranks without an MPI", flavour);
}

// Before anything is sent: a world of another size than the launcher's means that the ranks did not find each
// other (each a world of one) or found others.
Result<void> check_world(const Communicator& world, const Environment& environment,
                         std::string_view flavour) {
  const std::optional<std::string> promised = environment.find("DLRUN_SIZE");
  if (!promised || *promised == std::to_string(world.size())) return {};
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} started as a world of {}, but DLRUN_SIZE is {}", flavour,
                                        world.size(), *promised),
                    .where = fmt::format("rank {}", environment.get("DLRUN_RANK", "unknown")),
                    .hint = way_without(flavour)});
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_mpi_communicator(MpiLibrary mpi, const Environment& environment,
                                                            const AllreduceChoice& choice) {
  const std::string name = mpi->flavour;
  auto world = std::make_unique<MpiCommunicator>(std::move(mpi), environment);
  TRY(world->start(choice));
  if (auto right = check_world(*world, environment, name); !right) {
    if (world->size() == 1) (void)world->finish();  // alone, so it cannot wait for others; removes its files
    return fail(right.error());
  }
  TRY(world->share_memory(environment));
  return world;
}

}  // namespace dlrun::runtime
