// What all MPI services share: what a rank must not inherit, what it keeps, names, and plans that cannot be
// served.
#include "src/agent/pmi/mpi_service.hpp"

#include <filesystem>

#include <doctest/doctest.h>
#include <unistd.h>

#include "src/agent/job_name.hpp"
#include "src/agent/launcher_variables.hpp"
#include "src/agent/shared_files.hpp"

namespace dlrun::agent {

TEST_CASE("an outer launcher's variables go, the user's tuning stays") {
  Environment environment = Environment::from_entries(
      {"PMI_FD=5", "PMI_RANK=0", "PMI_SIZE=2", "PMIX_NAMESPACE=x", "PMIX_SERVER_URI41=y",
       "OMPI_COMM_WORLD_SIZE=2", "OMPI_MCA_ess=singleton", "OMPI_MCA_orte_local_daemon_uri=z",
       "HYDI_CONTROL_FD=7", "MPI_LOCALNRANKS=2", "DLRUN_SERVERS=2", "DLRUN_TENSOR_SIZE=4",
       "OMPI_MCA_btl=tcp,self", "UCX_TLS=tcp", "MPIR_CVAR_DEBUG_SUMMARY=1", "SLURM_JOB_ID=3", "PATH=/bin"});
  scrub_launcher_variables(environment);
  CHECK(environment ==
        Environment::from_entries({"OMPI_MCA_btl=tcp,self", "UCX_TLS=tcp", "MPIR_CVAR_DEBUG_SUMMARY=1",
                                   "SLURM_JOB_ID=3", "PATH=/bin"}));
}

TEST_CASE("the bootstrap overwrites what it must set and leaves the user's tuning") {
  Environment environment = Environment::from_entries({"PMI_FD=5", "UCX_TLS=tcp"});
  MpiBootstrap bootstrap;
  bootstrap.set = {{"PMI_FD", "9"}};
  bootstrap.defaults = {{"UCX_TLS", "shm"}, {"A", "1"}};
  apply(bootstrap, environment);
  CHECK(environment == Environment::from_entries({"PMI_FD=9", "UCX_TLS=tcp", "A=1"}));
}

TEST_CASE("an MPI job with a node without ranks is refused, one without MPI has no service") {
  EventLoop loop;
  plan::NodeSlice slice;
  slice.plan.nodes = {{NodeIndex(0), HostName("c1")}, {NodeIndex(1), HostName("c2")}};
  slice.node_of_rank = {0, 0};
  slice.plan.mpi = plan::MpiProtocol::pmi1;
  const auto service = make_mpi_service(slice, Environment(), "/nowhere", loop, {});
  REQUIRE(!service);
  CHECK(service.error().what == "c2 has no rank, and every node of an MPI job needs one");
  slice.plan.mpi = plan::MpiProtocol::none;
  const auto none = make_mpi_service(slice, Environment(), "/nowhere", loop, {});
  REQUIRE(none);
  CHECK(*none == nullptr);
}

TEST_CASE("a job's folder for shared-memory files goes with it, and those of its killed attempts") {
  plan::Plan plan;
  plan.job_id = "shared-files-" + std::to_string(::getpid());
  const std::string killed = "/dev/shm/" + job_name(plan) + "-n1";
  std::filesystem::create_directory(killed);
  std::filesystem::create_directory(killed + "/segments");
  plan.attempt = 2;
  std::string folder;
  {
    const SharedFiles files(plan, NodeIndex(1));
    folder = files.folder();
    CHECK(folder == "/dev/shm/" + job_name(plan) + "-n1");
    CHECK(std::filesystem::is_directory(folder));
    CHECK(!std::filesystem::exists(killed));
  }
  CHECK(!std::filesystem::exists(folder));
}

TEST_CASE("a job's name in its MPI is plain, bounded and differs by attempt") {
  plan::Plan plan;
  plan.job_id = "a/b c.7";
  CHECK(job_name(plan) == "dlrun-a-b-c-7-1");
  plan.attempt = 2;
  plan.job_id = std::string(60, 'x') + "-77";
  CHECK(job_name(plan) == "dlrun-" + std::string(37, 'x') + "-77-2");
}

}  // namespace dlrun::agent
