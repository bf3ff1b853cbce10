// Forgets an outer launcher: a rank started under mpirun, srun, hydra or by a rank of dlrun inherits
// addresses of servers that do not know it. A rank's own place in its scheduler's variables is in the plan.
// What a user sets by hand to tune an MPI (OMPI_MCA_btl, UCX_*, MPIR_CVAR_*) stays.
#include "src/agent/launcher_variables.hpp"

#include <array>
#include <string_view>

#include "schedulers/scheduler.hpp"

namespace dlrun::agent {

namespace {

constexpr std::array<std::string_view, 14> prefixes = {
    "PMI_",      "PMI2_",        "PMIX_",           "HYDI_",          "HYDRA_",        "OMPI_COMM_WORLD_",
    "OMPI_APP_", "OMPI_MCA_ess", "OMPI_MCA_schizo", "OMPI_MCA_orte_", "OMPI_MCA_pmix", "OMPI_MCA_initial_",
    "PRTE_",     "PALS_",
};

constexpr std::array<std::string_view, 20> names = {
    // Of a rank of dlrun: those that not every job sets anew.
    "DLRUN_DATA_RANK",
    "DLRUN_DATA_SIZE",
    "DLRUN_PIPELINE_RANK",
    "DLRUN_PIPELINE_SIZE",
    "DLRUN_SEQUENCE_PARALLEL",
    "DLRUN_SERVERS",
    "DLRUN_TENSOR_RANK",
    "DLRUN_TENSOR_SIZE",
    "MPI_LOCALNRANKS",
    "MPI_LOCALRANKID",
    "MPIEXEC_HOSTNAME",
    "OMPI_UNIVERSE_SIZE",
    "OMPI_ARGV",
    "OMPI_COMMAND",
    "OMPI_FILE_LOCATION",
    "OMPI_FIRST_RANKS",
    "OMPI_NUM_APP_CTX",
    "OMPI_MCA_mpi_oversubscribe",
    "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
    "OMPI_MCA_hwloc_base_binding_policy",
};

}  // namespace

void scrub_launcher_variables(Environment& environment) {
  for (const std::string_view prefix : prefixes) environment.unset_prefix(prefix);
  for (const std::string_view name : names) environment.unset(name);
  for (const Scheduler& scheduler : all_schedulers())
    for (const std::string_view name : scheduler.variables.agent_step) environment.unset(name);
}

}  // namespace dlrun::agent
