#include "schedulers/gpus/nvml_health.hpp"

#include <doctest/doctest.h>

#include "schedulers/slurm/cluster_name.hpp"

using namespace dlrun;

TEST_CASE("hardware errors of GPUs in the kernel's log, by their age") {
  const std::string log =
      "6,1,1000000,-;nvidia: loading\n"
      "3,2,2000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
      "3,3,9000000,-;NVRM: Xid (PCI:0000:86:00): 31, pid=4711, name=python3, MMU Fault\n"
      "3,4,9000000,-;NVRM: Xid (PCI:0000:86:00): 48, pid=4711, name=python3, DBE\n"
      "3,5,9000000,-;NVRM: Xid (PCI:0000:86:00): many\n"
      "3,6;NVRM: Xid (PCI:0000:86:00): 48, no time\n";
  const auto all = hardware_xids(log, 0);
  REQUIRE(all.size() == 2);
  CHECK(all[0].gpu == "PCI:0000:3b:00");
  CHECK(all[0].number == 79);
  const auto late = hardware_xids(log, 5'000'000);
  REQUIRE(late.size() == 1);
  CHECK(late[0].number == 48);
}

TEST_CASE("only what a GPU cannot help is a slowdown") {
  CHECK(slowdown_text(0x1 | 0x2 | 0x4).empty());  // idle, application clocks, power cap
  CHECK(slowdown_text(0x40 | 0x8) == "thermal slowdown by its hardware");
  CHECK(slowdown_text(0x80) == "power brake");
}

TEST_CASE("the name of a Slurm cluster, from its configuration") {
  CHECK(cluster_name_of("# ClusterName=no\nSlurmctldHost=head\nclustername = big  # ours\n") == "big");
  CHECK(cluster_name_of("SlurmctldHost=head\n").empty());
  CHECK(slurm_cluster_name(Environment::from_entries({"SLURM_CLUSTER_NAME=here"})) == "here");
}
