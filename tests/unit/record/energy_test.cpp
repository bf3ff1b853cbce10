// The joules of a run.
#include "src/record/energy.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;

namespace {

Ticks ticks_at(double seconds) {
  return Ticks{} + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
}

}  // namespace

TEST_CASE("joules in all, by epoch on a line between the samples, and per 1,000 samples") {
  EnergyAccounting energy(2);
  for (const double time : {0.0, 10.0, 20.0}) {
    energy.take("c1", {{"cpu_joules", time * 10}, {"gpu_why", "no NVML library here"}}, ticks_at(time));
    energy.take("c2", {{"cpu_joules", time * 30}}, ticks_at(time));
  }
  energy.reported({{"step", 1}, {"epoch", 1}, {"samples", 100}}, ticks_at(1));
  energy.reported({{"step", 50}, {"epoch", 2}, {"samples", 5000}}, ticks_at(15));
  energy.reported({{"step", 99}, {"epoch", 2}, {"samples", 8000}}, ticks_at(19));
  const Json all = energy.all();
  CHECK(all["cpu_joules"] == 800);
  CHECK(all["per_epoch"] == Json::array({{{"epoch", 1}, {"cpu_joules", 600.0}, {"gpu_joules", nullptr}},
                                         {{"epoch", 2}, {"cpu_joules", 200.0}, {"gpu_joules", nullptr}}}));
  CHECK(all["per_1000_samples"]["cpu_joules"] == 100);
  CHECK(all["gpu_joules"].is_null());
  CHECK(all["gpu_why"] == "c1: no NVML library here");
  CHECK_FALSE(all.contains("cpu_why"));
  CHECK(energy.metrics_line().value() == Json{{"step", 99}, {"energy_cpu_joules", 800.0}});
}

TEST_CASE("a node that is gone keeps its share, and the others are counted on") {
  EnergyAccounting energy(2);
  for (int i = 0; i <= 20; ++i) {
    energy.take("c1", {{"cpu_joules", i * 50}}, ticks_at(i * 5));
    if (i <= 4) energy.take("c2", {{"cpu_joules", i * 50}}, ticks_at(i * 5));
  }
  energy.reported({{"step", 1}, {"epoch", 1}}, ticks_at(1));
  energy.reported({{"step", 2}, {"epoch", 2}}, ticks_at(80));
  CHECK(energy.all()["per_epoch"][0]["cpu_joules"] == 1000);
  CHECK(energy.all()["cpu_joules"] == 1200);
}

TEST_CASE("another agent of a host counts on from where it is heard first") {
  EnergyAccounting energy(1);
  energy.take("c1", {{"cpu_joules", 500}}, ticks_at(10), NodeIndex(0));
  energy.take("c1", {{"memory_used", 7}}, ticks_at(15), NodeIndex(1));
  CHECK(energy.all()["cpu_joules"] == 500);
  energy.take("c1", {{"cpu_joules", 80}}, ticks_at(20), NodeIndex(1));
  CHECK(energy.all()["cpu_joules"] == 500);
  energy.take("c1", {{"cpu_joules", 130}}, ticks_at(25), NodeIndex(1));
  CHECK(energy.all()["cpu_joules"] == 550);
}

TEST_CASE("where a node does not tell, the run does not, and says why") {
  EnergyAccounting energy(2);
  CHECK(energy.all()["cpu_why"] == "not every node has told");
  CHECK_FALSE(energy.metrics_line());
  energy.take("c1", {{"cpu_joules", 5.0}}, ticks_at(1));
  CHECK(energy.all()["cpu_joules"].is_null());
  energy.take("c2", {{"cpu_joules", nullptr}, {"cpu_why", "cannot read energy_uj: Permission denied"}},
              ticks_at(1));
  CHECK(energy.all()["cpu_joules"].is_null());
  CHECK(energy.all()["cpu_why"] == "c2: cannot read energy_uj: Permission denied");
  energy.reported({{"step", 3}}, ticks_at(2));
  CHECK_FALSE(energy.metrics_line());
}

TEST_CASE("GPU use and memory are in the line for the metrics") {
  EnergyAccounting energy(1);
  energy.take("c1", {{"gpu", 0.75}, {"gpu_memory_used", 1000}, {"gpu_joules", 2.5}}, ticks_at(1));
  energy.reported({{"step", 3}}, ticks_at(2));
  CHECK(energy.metrics_line().value() ==
        Json{{"step", 3}, {"energy_gpu_joules", 2.5}, {"gpu_use", 0.75}, {"gpu_memory_bytes", 1000.0}});
}

TEST_CASE("the samples of a long run are thinned") {
  EnergyAccounting energy(1);
  for (int i = 0; i < 20'000; ++i) energy.take("c1", {{"cpu_joules", i}}, ticks_at(i));
  energy.reported({{"step", 1}, {"epoch", 1}}, ticks_at(1));
  energy.reported({{"step", 2}, {"epoch", 2}}, ticks_at(10'000));
  CHECK(energy.all()["per_epoch"][0]["cpu_joules"] == doctest::Approx(10'000).epsilon(0.01));
}
