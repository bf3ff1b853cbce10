#include <algorithm>

#include <doctest/doctest.h>
#include <sched.h>

#include "schedulers/gpus/gpus.hpp"
#include "schedulers/gpus/kernel_gpus.hpp"
#include "schedulers/scheduler.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;

namespace {

Environment with_devices(const std::string& value) {
  return Environment::from_entries({"CUDA_VISIBLE_DEVICES=" + value});
}

const FoundGpus kFour{.names = std::vector<std::string>{"0", "1", "2", "3"}, .evidence = "NVML: 4 GPUs"};
const FoundGpus kUnknown{.names = {}, .evidence = "no NVML library here: GPUs unknown"};
const FoundGpus kDivided{.names = std::vector<std::string>{"MIG-1", "MIG-2"}, .evidence = "NVML: 2 GPUs"};

Result<Allocation> found_in(const Environment& environment, std::string_view wanted) {
  const SystemCommands commands;
  const SystemClock clock;
  return find_allocation({environment, commands, clock, [&] { return gpus_of_driver(environment); }}, wanted);
}

}  // namespace

TEST_CASE("outside any scheduler's job the allocation is this machine: one node, its cores, no end") {
  const Allocation found = found_in(Environment{}, "auto").value();
  CHECK(found.scheduler == "local");
  REQUIRE(found.nodes.size() == 1);
  CHECK_FALSE(found.nodes[0].host.get().empty());
  cpu_set_t mask;
  REQUIRE(sched_getaffinity(0, sizeof(mask), &mask) == 0);
  CHECK(found.nodes[0].cpus == CPU_COUNT(&mask));
  CHECK_FALSE(found.end_time.has_value());
  CHECK_FALSE(found.job_id.has_value());
  CHECK(found.evidence.front() == "not inside a batch job: only this machine");
}

TEST_CASE("an unknown scheduler is refused with the nearest name") {
  const auto found = found_in(Environment{}, "locla");
  REQUIRE_FALSE(found.has_value());
  CHECK(found.error().text() == "unknown scheduler 'locla'\n  hint: did you mean 'local'?");
}

TEST_CASE("inside a job whose nodes cannot be read, this machine is taken only by name") {
  const auto inside = Environment::from_entries({"SLURM_JOB_ID=7"});
  const auto found = found_in(inside, "auto");
  REQUIRE_FALSE(found.has_value());
  CHECK(found.error().kind == ErrorKind::allocation);
  CHECK(found.error().what.find("SLURM_JOB_NODELIST is not set") != std::string::npos);
  CHECK(found_in(inside, "local").has_value());
}

TEST_CASE("GPUs: the driver's list, less what the environment hides") {
  CHECK(usable_gpus(kFour, Environment{}).names == kFour.names);
  CHECK(usable_gpus(kFour, with_devices("3, 1")).names == std::vector<std::string>{"3", "1"});
  CHECK(usable_gpus(kFour, with_devices("GPU-8f2c")).names == std::vector<std::string>{"GPU-8f2c"});
  CHECK(usable_gpus(kDivided, with_devices("0")).names == std::vector<std::string>{"0"});
  for (const char* hidden : {"", "-1", "NoDevFiles"})
    CHECK(usable_gpus(kFour, with_devices(hidden)).names == std::vector<std::string>{});
  CHECK(usable_gpus(kFour, with_devices("2")).evidence == "CUDA_VISIBLE_DEVICES=2");
}

TEST_CASE("without NVML the kernel tells GPUs: device files, no more than the driver has; else its folder") {
  using Names = std::vector<std::string>;
  const test::Folder empty;
  CHECK_FALSE(gpus_of_kernel(empty.path).names.has_value());
  const test::Folder machine;
  for (const char* name : {"nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm", "null"})
    machine.write(std::string("dev/") + name, "");
  CHECK(gpus_of_kernel(machine.path).names == Names{"0", "1"});
  for (const char* bus : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"})
    machine.write(std::string("proc/driver/nvidia/gpus/") + bus + "/information", "");
  CHECK(gpus_of_kernel(machine.path).names == Names{"0", "1"});
  const test::Folder no_files;
  no_files.write("proc/driver/nvidia/gpus/0000:01:00.0/information", "");
  CHECK(gpus_of_kernel(no_files.path).names == Names{"0"});
  CHECK(gpus_of_kernel(no_files.path).evidence == "/proc/driver/nvidia: 1 GPUs");
}

TEST_CASE("without a driver's word GPUs are unknown, unless the user names them") {
  CHECK_FALSE(usable_gpus(kUnknown, Environment{}).names.has_value());
  CHECK(usable_gpus(kUnknown, with_devices("0,1")).names == std::vector<std::string>{"0", "1"});
}

TEST_CASE("a GPU that is not there hides what follows, as CUDA has it, and is named") {
  const auto found = usable_gpus(kFour, with_devices("1,7,2"));
  CHECK(found.names == std::vector<std::string>{"1"});
  CHECK(found.warning->find("entry 2 ('7') is not one of this machine's 4 GPUs") != std::string::npos);
  CHECK(usable_gpus(kFour, with_devices("1,,2")).names == std::vector<std::string>{"1"});
}
