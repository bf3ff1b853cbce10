#include "src/agent/pmi/native_service.hpp"

#include <algorithm>
#include <array>

#include <fcntl.h>

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/process/child.hpp"

namespace dlrun::agent {
namespace {

constexpr std::array<std::string_view, 10> kPrefixes{"PMI_",  "PMI2_", "PMIX_", "OMPI_",  "ORTE_",
                                                     "PRTE_", "PALS_", "HYDI_", "HYDRA_", "MPI_LOCAL"};

// Of a step whose tasks are the ranks.
bool is_of_rank_step(std::string_view name) {
  return std::any_of(all_schedulers().begin(), all_schedulers().end(), [&](const Scheduler& scheduler) {
    const auto& names = scheduler.variables.rank_step;
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

std::vector<std::string_view> size_variables() {
  std::vector<std::string_view> out{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
  for (const Scheduler& scheduler : all_schedulers())
    if (!scheduler.variables.step_size.empty()) out.push_back(scheduler.variables.step_size);
  return out;
}

// The first of these that is set.
std::optional<std::pair<std::string, std::int64_t>> number_of(const Environment& own,
                                                              const std::vector<std::string_view>& names) {
  for (const std::string_view name : names)
    if (const auto value = parse_integer(own.get(name), 0, 1 << 30))
      return std::pair(std::string(name), *value);
  return std::nullopt;
}

Error alone(Rank rank, int size, const std::string& why, const std::string& hint) {
  return {.kind = ErrorKind::unavailable,
          .what = fmt::format("rank {} would come up as 1 of 1, not as one of {}: {}", rank, size, why),
          .where = {},
          .hint = hint,
          .also = {}};
}

class NativeService final : public MpiService {
 public:
  NativeService(const plan::NodeSlice& slice, const Environment& own, Callbacks callbacks)
      : slice_(slice), own_(own), callbacks_(std::move(callbacks)) {}

  Result<MpiBootstrap> bootstrap(Rank rank) override {
    TRY(check_engine(own_, flavour_of(rank), rank, slice_.world_size()));
    MpiBootstrap bootstrap{.set = engine_variables(own_), .defaults = {}, .child_fds = {}};
    // The line to the launcher is ours until the rank has it; then it is the rank's alone.
    if (const auto fd = parse_integer(own_.get("PMI_FD"), 3, 1 << 20)) {
      ::fcntl(static_cast<int>(*fd), F_SETFD, FD_CLOEXEC);
      bootstrap.child_fds.emplace_back(static_cast<int>(*fd));
    }
    return bootstrap;
  }
  // Its MPI speaks to the launcher, which handles ranks that end without MPI_Finalize.
  void started(Rank rank) override { callbacks_.connected(rank); }
  void exited(Rank rank) override { callbacks_.finalized(rank); }
  void exchanged(const std::string&, const std::vector<std::string>&) override {}

 private:
  MpiFlavour flavour_of(Rank rank) const {
    const auto found = std::find_if(slice_.plan.ranks.begin(), slice_.plan.ranks.end(),
                                    [&](const plan::RankPlan& plan) { return plan.rank == rank; });
    if (found == slice_.plan.ranks.end()) return MpiFlavour::unknown;
    const auto program = find_program(found->argv.front(), own_, slice_.plan.working_directory);
    return program ? mpi_flavour(*program, own_).value_or(MpiFlavour::unknown) : MpiFlavour::unknown;
  }

  const plan::NodeSlice& slice_;
  Environment own_;
  Callbacks callbacks_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> engine_variables(const Environment& own) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& entry : own.entries()) {
    const std::size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (std::any_of(kPrefixes.begin(), kPrefixes.end(), begins) || is_of_rank_step(name))
      out.emplace_back(name, entry.substr(equals + 1));
  }
  return out;
}

Result<void> check_engine(const Environment& own, MpiFlavour flavour, Rank rank, int size) {
  if (size == 1) return {};
  const bool pmix = own.find("PMIX_NAMESPACE").has_value();
  // Cray's PMI finds its peers in a file that PALS or srun names.
  const bool pmi =
      own.find("PMI_FD") || own.find("PMI_PORT") || own.find("PMI2_FD") || own.find("PALS_APINFO");
  if (!pmix && !pmi)
    return fail(alone(rank, size, "the launcher gave it no PMI",
                      "--via slurm or --via mpiexec starts MPI ranks; --mpi auto needs neither"));
  if (flavour == MpiFlavour::openmpi && !pmix)
    return fail(alone(rank, size, "it links Open MPI, and the launcher speaks PMI but not PMIx",
                      "SLURM_MPI_TYPE=pmix, or an mpirun of Open MPI"));
  if (flavour == MpiFlavour::mpich && !pmi)
    return fail(alone(rank, size, "it links an MPICH, and the launcher speaks PMIx but not PMI",
                      "SLURM_MPI_TYPE=pmi2, or an mpiexec of MPICH"));
  if (const auto told = number_of(own, size_variables()))
    if (told->second != size)
      return fail(alone(rank, size, fmt::format("the launcher says {}={}", told->first, told->second),
                        "--mpi auto needs no launcher's help"));
  return {};
}

std::unique_ptr<MpiService> make_engine_service(const plan::NodeSlice& slice, const Environment& own,
                                                MpiService::Callbacks callbacks) {
  return std::make_unique<NativeService>(slice, own, std::move(callbacks));
}

}  // namespace dlrun::agent
