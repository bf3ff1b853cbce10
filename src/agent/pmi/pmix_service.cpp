#include "src/agent/pmi/pmix_service.hpp"

#include <poll.h>
#include <sched.h>

#include "src/agent/job_name.hpp"
#include "src/agent/pmi/pmix_table.h"
#include "src/agent/shared_files.hpp"
#include "src/base/install.hpp"
#include "src/base/shared_library.hpp"
#include "src/base/unload_library.hpp"

namespace dlrun::agent {

namespace {

constexpr const char* kLibrary = "libpmix.so.2";

Result<std::filesystem::path> plugin() {
  return TRY(this_installation()).plugins / "libdlrun-pmix.so";
}

int processors_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

class PmixService final : public MpiService {
 public:
  PmixService(SharedLibrary library, const DlrunPmixTable* table, const plan::NodeSlice& slice,
              EventLoop& loop, Callbacks callbacks)
      : library_(std::move(library)),
        table_(table),
        loop_(loop),
        callbacks_(std::move(callbacks)),
        crowded_(static_cast<int>(slice.plan.ranks.size()) > processors_here()),
        one_node_(slice.plan.nodes.size() == 1),
        files_(slice.plan, slice.node) {}

  ~PmixService() override {
    if (!running_) return;
    loop_.unwatch(table_->event_fd());
    table_->stop();
  }

  Result<void> start(const plan::NodeSlice& slice, const std::string& scratch) {
    const std::string name = job_name(slice.plan);
    std::vector<const char*> nodes;
    for (const plan::NodePlan& node : slice.plan.nodes) nodes.push_back(node.host.get().c_str());
    const DlrunPmixJob job = {.name_space = name.c_str(),
                              .scratch = scratch.c_str(),
                              .node_names = nodes.data(),
                              .node_count = static_cast<int>(nodes.size()),
                              .node_index = slice.node.get(),
                              .node_of_rank = slice.node_of_rank.data(),
                              .world_size = slice.world_size()};
    const DlrunPmixHost host = this->host();
    if (const char* problem = table_->start(&job, &host); problem != nullptr)
      return fail(Error{.kind = ErrorKind::unavailable,
                        .what = fmt::format("the PMIx server does not start: {}", problem),
                        .where = fmt::format("PMIx files in {}", scratch)});
    running_ = true;
    loop_.watch(table_->event_fd(), POLLIN, [this](short) { table_->dispatch(); });
    return {};
  }

  Result<MpiBootstrap> bootstrap(Rank rank) override {
    const char* const* entries = nullptr;
    if (const char* problem = table_->environment(rank.get(), &entries); problem != nullptr)
      return fail(ErrorKind::unavailable, "no PMIx environment for rank {}: {}", rank, problem);
    MpiBootstrap bootstrap;
    for (; *entries != nullptr; ++entries) {
      const std::string_view entry = *entries;
      const std::size_t equals = entry.find('=');
      if (equals != std::string_view::npos)
        bootstrap.set.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
    }
    add_open_mpi_settings(bootstrap);
    return bootstrap;
  }

  void started(Rank) override {}
  void exited(Rank) override { table_->dispatch(); }

  void exchanged(const std::string& key, const std::vector<std::string>& blobs) override {
    std::vector<const char*> data;
    std::vector<std::size_t> lengths;
    for (const std::string& blob : blobs) {
      data.push_back(blob.data());
      lengths.push_back(blob.size());
    }
    table_->exchanged(key.c_str(), data.data(), lengths.data(), static_cast<int>(blobs.size()));
  }

 private:
  // Open MPI 4 asks "who launched me?" before it looks for PMIx; unless its guesses are shut out it declares
  // itself a world of one. We bind the ranks, not the library.
  void add_open_mpi_settings(MpiBootstrap& bootstrap) const {
    bootstrap.set.emplace_back("OMPI_MCA_schizo", "^orte,slurm");
    bootstrap.set.emplace_back("OMPI_MCA_ess", "pmi");
    bootstrap.defaults.emplace_back("OMPI_MCA_hwloc_base_binding_policy", "none");
    bootstrap.defaults.emplace_back("OMPI_MCA_orte_externally_bound", "1");
    if (!files_.folder().empty()) {
      for (const char* component : {"btl_vader", "btl_sm", "osc_sm"})
        bootstrap.defaults.emplace_back(fmt::format("OMPI_MCA_{}_backing_directory", component),
                                        files_.folder());
      bootstrap.defaults.emplace_back("UCX_POSIX_DIR", files_.folder());
    }
    // On one node only: the search for fabrics takes most of MPI_Init (0.2 of 0.4 s), for nothing.
    if (one_node_) bootstrap.defaults.emplace_back("OMPI_MCA_pml", "ob1");
    if (crowded_) bootstrap.defaults.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
  }

  static PmixService& self(void* context) { return *static_cast<PmixService*>(context); }

  DlrunPmixHost host() {
    return {
        .context = this,
        .connected = [](void* c, int rank) { self(c).callbacks_.connected(Rank(rank)); },
        .finalized = [](void* c, int rank) { self(c).callbacks_.finalized(Rank(rank)); },
        .aborted = [](void* c, int rank, int code,
                      const char* text) { self(c).callbacks_.aborted(Rank(rank), code, text); },
        .exchange = [](void* c, const char* key, const char* blob,
                       std::size_t length) { self(c).callbacks_.exchange(key, std::string(blob, length)); },
        .log = [](void* c, const char* text) { self(c).callbacks_.log(text); }};
  }

  SharedLibrary library_;
  const DlrunPmixTable* table_;
  EventLoop& loop_;
  Callbacks callbacks_;
  bool crowded_;
  bool one_node_;
  SharedFiles files_;
  bool running_ = false;
};

}  // namespace

bool unload_pmix() {
  if (!is_library_loaded(kLibrary)) return true;
  if (const auto path = plugin()) unload_library(*path);
  return !is_library_loaded(kLibrary);
}

Result<std::unique_ptr<MpiService>> make_pmix_service(const plan::NodeSlice& slice,
                                                      const std::string& scratch, EventLoop& loop,
                                                      MpiService::Callbacks callbacks) {
  const auto path = TRY(plugin());
  SharedLibrary library = TRY(SharedLibrary::open(path));
  auto* const table_of = TRY(library.symbol<const DlrunPmixTable*()>(DLRUN_PMIX_TABLE_SYMBOL));
  const DlrunPmixTable* table = table_of();
  if (table->version != DLRUN_PMIX_TABLE_VERSION)
    return fail(
        Error{.kind = ErrorKind::unavailable,
              .what = fmt::format("the plug-in speaks version {} of the table, this program version {}",
                                  table->version, DLRUN_PMIX_TABLE_VERSION),
              .where = path.string(),
              .hint = "install the plug-ins of the same build as the program"});
  auto service = std::make_unique<PmixService>(std::move(library), table, slice, loop, std::move(callbacks));
  TRY(service->start(slice, scratch));
  return service;
}

}  // namespace dlrun::agent
