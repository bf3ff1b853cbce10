#include "runtime/comm/mpi_communicator.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/comm/mpi_table.h"
#include "runtime/comm/pmi_farewell.hpp"
#include "runtime/comm/shared_memory.hpp"
#include "src/base/install.hpp"
#include "src/base/shared_library.hpp"

namespace dlrun::runtime {

namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(SharedLibrary library, const DlrunMpiTable* table, MpiFlavour flavour,
                  const Environment& environment)
      : library_(std::move(library)), table_(table), flavour_(flavour), pmi_fd_(environment.find("PMI_FD")) {}

  Result<void> start() {
    TRY(check(table_->start(), "MPI_Init_thread"));
    rank_ = table_->rank();
    size_ = table_->size();
    int node_ranks = 0;
    TRY(check(table_->ranks_on_this_node(&node_ranks), "MPI_Comm_split_type"));
    one_node_ = node_ranks == size_;
    return {};
  }

  // Where all ranks are on one node. A library that cannot share memory is no error: its own sum remains.
  void share_memory() {
    if (!one_node_ || size_ == 1) return;
    void* memory = nullptr;
    if (table_->share_memory(SharedMemorySum::bytes(size_), &memory) == 0)
      shared_.emplace(memory, rank_, size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override {
    return version() + (shared_ ? ", sums through shared memory" : "");
  }

  // On one node nothing would move before wait_all anyway (no thread of the library's works for it), and one
  // meeting of the ranks a step costs less than one a bucket: so the sums are only noted here.
  Result<void> allreduce_start(std::span<float> data) override {
    if (size_ == 1) return {};
    if (!one_node_) return check(table_->sum_floats_start(data.data(), data.size()), "MPI_Iallreduce");
    pending_.push_back(data);
    return {};
  }

  Result<void> wait_all() override {
    if (!one_node_) return check(table_->wait_all(), "MPI_Waitall");
    for (const std::span<float> data : pending_) TRY(sum_on_this_node(data));
    pending_.clear();
    return {};
  }

  Result<void> allreduce(std::span<double> data) override {
    return check(table_->sum_doubles(data.data(), data.size()), "MPI_Allreduce");
  }
  Result<void> broadcast(std::span<std::byte> data, int root) override {
    return check(table_->broadcast(data.data(), data.size(), root), "MPI_Bcast");
  }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (all.size() != mine.size() * static_cast<std::size_t>(size_))
      return fail(ErrorKind::internal, "allgather of {} bytes from {} ranks into {} bytes", mine.size(),
                  size_, all.size());
    return check(table_->allgather(mine.data(), mine.size(), all.data()), "MPI_Allgather");
  }
  Result<void> barrier() override { return check(table_->barrier(), "MPI_Barrier"); }

  [[noreturn]] void abort(int code) override {
    table_->abort(code);
    std::_Exit(code);  // MPI_Abort may return where it cannot reach the launcher
  }

  // MPICH over UCX and TCP waits for ever in about half of its MPI_Finalize calls (4.0.2 with UCX 1.13), so
  // across nodes it is left after a barrier, and the launcher is told in its own protocol that this was in
  // order.
  Result<void> finish() override {
    if (flavour_ == MpiFlavour::mpich && !one_node_ && pmi_fd_) {
      TRY(check(table_->leave(), "MPI_Barrier"));
      return pmi_farewell(*pmi_fd_);
    }
    return check(table_->finish(), "MPI_Finalize");
  }

 private:
  Result<void> sum_on_this_node(std::span<float> data) {
    if (!shared_) return check(table_->sum_floats(data.data(), data.size()), "MPI_Allreduce");
    shared_->sum(data);
    return {};
  }

  Result<void> check(int error, std::string_view call) const {
    if (error == 0) return {};
    char text[512] = {};
    table_->error_text(error, text, sizeof text);
    return fail(Error{.kind = ErrorKind::lost,
                      .what = fmt::format("{} failed in {}: {}", call, table_->flavour, text),
                      .where = fmt::format("rank {}", rank_)});
  }

  // "Open MPI v4.1.4" of the long text that the library tells of itself.
  std::string version() const {
    char text[256] = {};
    table_->library_version(text, sizeof text);
    std::string line(text);
    line = line.substr(0, line.find_first_of(",\n"));
    for (char& c : line)
      if (c == '\t' || c == ':') c = ' ';
    return line;
  }

  SharedLibrary library_;
  const DlrunMpiTable* table_;
  MpiFlavour flavour_;
  std::optional<std::string> pmi_fd_;
  int rank_ = -1;
  int size_ = 0;
  bool one_node_ = false;
  std::optional<SharedMemorySum> shared_;
  std::vector<std::span<float>> pending_;
};

std::string plugin_name(MpiFlavour flavour) {
  return flavour == MpiFlavour::openmpi ? "libdlrun-mpi-openmpi.so" : "libdlrun-mpi-mpich.so";
}

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
  const std::string allreduce = environment.get("DLRUN_ALLREDUCE", "auto");
  if (allreduce != "auto" && allreduce != "mpi")
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("DLRUN_ALLREDUCE is '{}'", allreduce),
                      .hint = "valid values: auto, mpi"});
  const Installation installation = TRY(this_installation());
  const auto path = installation.plugins / plugin_name(flavour);
  SharedLibrary library = TRY(SharedLibrary::open(path));
  auto* const table_of = TRY(library.symbol<const DlrunMpiTable*()>(DLRUN_MPI_TABLE_SYMBOL));
  const DlrunMpiTable* table = table_of();
  if (table->version != DLRUN_MPI_TABLE_VERSION)
    return fail(
        Error{.kind = ErrorKind::unavailable,
              .what = fmt::format("the plug-in speaks version {} of the table, this program version {}",
                                  table->version, DLRUN_MPI_TABLE_VERSION),
              .where = path.string(),
              .hint = "install the plug-ins of the same build as the program"});
  const std::string name = table->flavour;
  auto world = std::make_unique<MpiCommunicator>(std::move(library), table, flavour, environment);
  TRY(world->start());
  if (auto right = check_world(*world, environment, name); !right) {
    if (world->size() == 1) (void)world->finish();  // alone, so it cannot wait for others; removes its files
    return fail(right.error());
  }
  if (allreduce == "auto") world->share_memory();
  return world;
}

}  // namespace dlrun::runtime
