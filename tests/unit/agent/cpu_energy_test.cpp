// Joules of processors, from counters as powercap has them.
#include "src/agent/cpu_energy.hpp"

#include <doctest/doctest.h>

#include "src/agent/gpu_meter.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::agent;

namespace {

void zone(const dlrun::test::Folder& folder, const std::string& name, const char* what,
          std::uint64_t microjoules) {
  folder.write(name + "/name", std::string(what) + "\n");
  folder.write(name + "/max_energy_range_uj", "10000000\n");
  folder.write(name + "/energy_uj", std::to_string(microjoules) + "\n");
}

}  // namespace

TEST_CASE("packages count, their parts do not, and a full counter begins anew") {
  const dlrun::test::Folder folder;
  zone(folder, "intel-rapl:0", "package-0", 9'000'000);
  zone(folder, "intel-rapl:1", "package-1", 1'000'000);
  zone(folder, "intel-rapl:0:0", "core", 5);
  CpuEnergy energy(folder.path);
  CHECK_FALSE(energy.joules());
  energy.begin();
  CHECK(energy.joules().value() == doctest::Approx(0));
  zone(folder, "intel-rapl:0", "package-0", 500'000);    // 1.5 J
  zone(folder, "intel-rapl:1", "package-1", 3'000'000);  // 2 J
  CHECK(energy.joules().value() == doctest::Approx(3.5));
  energy.begin();
  CHECK(energy.joules().value() == doctest::Approx(0));
}

TEST_CASE("counters that are not there are said, and are not 0") {
  const dlrun::test::Folder folder;
  CpuEnergy energy(folder.path);
  energy.begin();
  CHECK(energy.joules().error().what == folder.path.string() + " has no counters of processors");
  folder.write("intel-rapl:0/name", "package-0\n");  // as where only root may read the rest
  energy.begin();
  CHECK(energy.joules().error().what.find("max_energy_range_uj") != std::string::npos);
}

TEST_CASE("the GPUs of a node together: their mean use, their memory, and the energy since the start") {
  const std::vector<GpuState> first{{.use = 0.0, .memory_used = 1, .memory_total = 10, .millijoules = 1000},
                                    {.use = 0.0, .memory_used = 1, .memory_total = 10, .millijoules = 5000}};
  std::vector<GpuState> now{{.use = 0.5, .memory_used = 4, .memory_total = 10, .millijoules = 3000},
                            {.use = 1.0, .memory_used = 6, .memory_total = 10, .millijoules = 5500}};
  CHECK(gpu_usage_of(first, now) ==
        Json{{"gpu", 0.75}, {"gpu_memory_used", 10}, {"gpu_memory_total", 20}, {"gpu_joules", 2.5}});
  now[1].millijoules.reset();
  const Json partly = gpu_usage_of(first, now);
  CHECK(partly["gpu_joules"].is_null());  // a part would pass for the whole
  CHECK(partly["gpu_why"] == "the driver counts no energy of these GPUs");
}
